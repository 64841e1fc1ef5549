"""
What the probes do, as the text of a step: plain Python, without anything of ours.

Each function tries one thing that a step must not be able to do, and says whether it could. `t`
are the targets: what there is to reach. An `OSError` means that it could not.
"""

import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import stat
import struct
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
ARM = os.uname().machine == "aarch64"


def syscall(intel, arm, *arguments):
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    done = libc.syscall(ctypes.c_long(arm if ARM else intel), *words)
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def called(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return True


def read(path):
    with open(path, "rb") as file:
        return file.read()


def opened(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK))
    return True


def connected(family, address):
    with socket.socket(family) as tried:
        tried.settimeout(5)
        tried.connect(address)
        return tried.recv(100)


def status(name):
    for line in read("/proc/self/status").decode().splitlines():
        if line.startswith(name + ":"):
            return line.split()[1]
    return None


def proc(pid, name):
    return f"/proc/{pid}/{name}"


# Files


def read_database(t):
    return len(read(t["database"])) > 0


def read_signing_key(t):
    return len(read(t["signing_key"])) > 0


def list_data_folder(t):
    return os.listdir(t["data"])


def write_data_folder(t):
    with open(t["data"] + "/planted", "w") as file:
        file.write("x")
    os.unlink(t["data"] + "/planted")
    return True


def stat_database(t):
    return os.stat(t["database"]).st_size > 0


def follow_link(t):
    os.symlink(t["database"], "link")
    return len(read("link")) > 0


def link_file(t):
    os.link(t["owned"], "stolen")
    return read("stolen")


def read_outside(t):
    return read(t["public"] + "/public.txt")


def write_outside(t):
    with open(t["public"] + "/open/" + str(os.getpid()), "w") as file:
        file.write("x")
    return True


def list_outside(t):
    return os.listdir(t["public"])


def watch_outside(t):
    watch = called_number(libc.inotify_init1, os.O_CLOEXEC)
    try:
        return called(libc.inotify_add_watch, watch, t["public"].encode(), 0x100)
    finally:
        os.close(watch)


def called_number(function, *arguments):
    number = function(*arguments)
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return number


def list_home(t):
    return t["in_home"] and set(t["in_home"]) <= set(os.listdir(t["home"]))


def list_logs(t):
    return os.listdir("/var/log") is not None


def list_devices_of_kernel(t):
    return os.listdir("/sys/kernel")


def read_shadow(t):
    return read("/etc/shadow")


def write_system(t):
    return opened("/usr/lib/os-release", os.O_WRONLY)


def change_mode(t):
    path = t["public"] + "/mode.txt"
    os.chmod(path, 0o644)
    return stat.S_IMODE(os.stat(path).st_mode) == 0o644


def truncate(t):
    path = t["public"] + "/truncate.txt"
    os.truncate(path, 0)
    return os.stat(path).st_size == 0


def remove(t):
    os.unlink(t["public"] + "/remove.txt")
    return True


def open_devices(t):
    names = ("kmsg", "mem", "fuse", "kvm", "net/tun", "ptmx", "vda", "sda", "loop-control")
    for name in names:
        try:
            return opened("/dev/" + name, os.O_RDONLY)
        except OSError:
            pass
    return False


def make_device(t):
    os.mknod("device", stat.S_IFBLK | 0o600, os.makedev(7, 0))
    return True


def write_kernel_settings(t):
    return opened("/proc/sys/kernel/hostname", os.O_WRONLY)


def neighbours_file(t):
    return t["secret"].encode() in read(t["neighbour_file"])


# Processes


def list_processes(t):
    return t["secret"].encode() in read(proc(t["victim"], "cmdline"))


def read_environment(t):
    return t["secret"].encode() in read(proc(t["victim"], "environ"))


def read_map(t):
    return read(proc(t["victim"], "maps"))


def read_memory(t):
    local, remote = ctypes.create_string_buffer(8), (ctypes.c_void_p * 2)(t["address"], 8)
    mine = (ctypes.c_void_p * 2)(ctypes.addressof(local), 8)
    return called_number(libc.process_vm_readv, t["victim"], mine, 1, remote, 1, 0) > 0


def trace(t):
    seize, interrupt, detach = 0x4206, 0x4207, 17
    syscall(101, 117, seize, t["victim"], 0, 0)
    syscall(101, 117, interrupt, t["victim"], 0, 0)
    os.waitpid(t["victim"], 0x40000000)
    syscall(101, 117, detach, t["victim"], 0, 0)
    return True


def signal_server(t):
    os.kill(t["server"], 0)
    return True


def signal_victim(t):
    os.kill(t["victim"], 0)
    return True


def signal_by_descriptor(t):
    fd = os.pidfd_open(t["victim"])
    try:
        signal.pidfd_send_signal(fd, 0)
    finally:
        os.close(fd)
    return True


def signal_supervisor(t):
    parent = os.getppid()
    if parent == 1:  # the first process of a namespace: what kills others does nothing to it
        os.kill(parent, signal.SIGKILL)
        os.kill(parent, signal.SIGSTOP)
        time.sleep(0.05)
        return False
    os.kill(parent, 0)
    return True


def signal_neighbour(t):
    os.kill(t["neighbour"], 0)
    return True


def neighbours_environment(t):
    return t["secret"].encode() in read(proc(t["neighbour"], "environ"))


def limit_victim(t):
    return resource.prlimit(t["victim"], resource.RLIMIT_NOFILE)


def slow_victim(t):
    os.setpriority(os.PRIO_PROCESS, t["victim"], os.getpriority(os.PRIO_PROCESS, t["victim"]))
    return True


def move_victim(t):
    os.sched_setaffinity(t["victim"], os.sched_getaffinity(t["victim"]))
    return True


def doom_victim(t):
    return opened(proc(t["victim"], "oom_score_adj"), os.O_WRONLY)


# What the server left open or said


def inherited_secret(t):
    return os.environ.get("SERVER_SECRET")


def inherited_descriptors(t):
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and os.path.exists("/proc/self/fd/" + name):  # else the listing's own
            return True
    return False


def supervisors_environment(t):
    read(proc(os.getppid(), "environ"))
    return True


def name_of_machine(t):
    return os.uname().nodename == t["hostname"]


# Privileges and the kernel


def gain_privileges(t):
    return status("NoNewPrivs") == "0"


def keep_capabilities(t):
    return int(status("CapPrm"), 16) != 0


def new_user_namespace(t):
    pid = os.fork()
    if pid == 0:
        os._exit(libc.unshare(0x10000000) != 0)
    return os.waitpid(pid, 0)[1] == 0


def clone_into_namespace(t):
    pid = syscall(56, 220, 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def clone3_into_namespace(t):
    arguments = struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    pid = syscall(435, 435, ctypes.create_string_buffer(arguments, 88), 88)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def mount(t):
    os.makedirs("m", exist_ok=True)
    called(libc.mount, b"tmpfs", os.path.abspath("m").encode(), b"tmpfs", 0, None)
    called(libc.umount, os.path.abspath("m").encode())
    return True


def enter_namespace(t):
    with open(proc(t["server"], "ns/uts")) as namespace:
        return called(libc.setns, namespace.fileno(), 0)


def change_root(t):
    pid = os.fork()
    if pid == 0:
        os._exit(libc.chroot(b"/") != 0)
    return os.waitpid(pid, 0)[1] == 0


def load_program(t):
    attributes = struct.pack("IIIII", 2, 4, 8, 1, 0) + bytes(100)
    os.close(syscall(321, 280, 0, ctypes.create_string_buffer(attributes), len(attributes)))
    return True


def count_events(t):
    attributes = struct.pack("IIQ", 1, 120, 0) + bytes(104)
    os.close(syscall(298, 241, ctypes.create_string_buffer(attributes), 0, -1, -1, 0))
    return True


def handle_faults(t):
    os.close(syscall(323, 282, os.O_CLOEXEC))
    return True


def use_keys(t):
    return syscall(248, 217, b"user", b"wfcore-probe", b"x", 1, -2) > 0


def use_ring(t):
    os.close(syscall(425, 425, 4, ctypes.create_string_buffer(120)))
    return True


def memory_nobody_counts(t):
    os.close(syscall(319, 279, b"x", 0))
    return True


def shared_segment(t):
    id = syscall(29, 194, 0, 4096, 0o1600)
    libc.shmctl(id, 0, None)
    return True


def message_queue(t):
    name = b"wfcore-%d" % os.getpid()
    os.close(syscall(240, 180, name, os.O_CREAT | os.O_RDWR, 0o600, None))
    syscall(241, 181, name)
    return True


def personality(t):
    before = libc.personality(0xFFFFFFFF)
    called(libc.personality, before | 0x0040000)
    libc.personality(before)
    return True


def read_kernel_log(t):
    return called_number(libc.klogctl, 10, None, 0) > 0


def open_by_handle(t):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount_id = ctypes.c_int()
    syscall(303, 264, -100, b"/usr", handle, ctypes.byref(mount_id), 0)
    return True


# Network of a step that has none


def connect_to_server(t):
    with socket.create_connection(("127.0.0.1", t["server_port"]), 5) as tried:
        tried.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        return b"200" in tried.recv(1000)


def connect_to_port(t):
    return connected(socket.AF_INET, ("127.0.0.1", t["port"]))


def send_datagram(t):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tried:
        tried.settimeout(1)
        tried.sendto(b"x", ("127.0.0.1", t["datagram_port"]))
        return tried.recv(10)


def connect_to_path(t):
    return connected(socket.AF_UNIX, t["public"] + "/socket")


def connect_to_abstract(t):
    return connected(socket.AF_UNIX, "\0" + t["abstract"])


def list_interfaces(t):
    return [name for _, name in socket.if_nameindex() if name != "lo"]


def raw_packets(t):
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    return True


def to_the_hypervisor(t):
    socket.socket(40, socket.SOCK_STREAM).close()
    return True


def kernel_crypto(t):
    socket.socket(38, socket.SOCK_SEQPACKET).close()
    return True


def kernel_events(t):
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15).close()
    return True


# Network of a step that has it


def connect_anywhere_else(t):
    return connect_to_port(t)


def connect_by_other_name(t):
    for host in ("0.0.0.0", "127.1.2.3"):
        try:
            return socket.create_connection((host, t["server_port"]), 5)
        except OSError:
            pass
    return False


def connect_by_own_address(t):
    return socket.create_connection((t["own_address"], t["server_port"]), 5)


def connect_as_ipv6(t):
    with socket.socket(socket.AF_INET6) as tried:
        tried.connect(("::ffff:127.0.0.1", t["server_port"]))
    return True


def connect_without_waiting(t):
    with socket.socket() as tried:
        tried.setblocking(False)
        error = tried.connect_ex(("127.0.0.1", t["server_port"]))
        return error in (0, 115)


def connect_by_sending(t):
    with socket.socket() as tried:
        return tried.sendto(b"GET / HTTP/1.0\r\n\r\n", 0x20000000, ("127.0.0.1", t["server_port"]))


def is_server(tried, t):
    """Whether that is who answered; the other greets at once and hangs up."""
    tried.settimeout(0.2)
    try:
        tried.recv(10)
    except TimeoutError:
        return tried.getpeername()[1] == t["server_port"]
    except OSError:
        pass
    return False


def connect_while_it_looks(t):
    """The address is changed all the time by another thread, from an allowed one and back."""
    family = struct.pack("=H", socket.AF_INET)
    address = bytearray(family + bytes((0, 0, 127, 0, 0, 1)) + bytes(8))
    place = (ctypes.c_char * 16).from_buffer(address)
    ports = [struct.pack(">H", t[name]) for name in ("port", "server_port")]
    going = True

    def change():
        while going:
            for port in ports:
                address[2:4] = port

    sys.setswitchinterval(0.0001)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            with socket.socket() as tried:
                if libc.connect(tried.fileno(), place, 16) == 0 and is_server(tried, t):
                    return True
    finally:
        going = False
        thread.join()
    return False


# How much


def fill_disk(t):
    try:
        with open("filler", "wb", buffering=0) as file:
            for _ in range(t["disk"] * 2 >> 20):
                file.write(bytes(1 << 20))
            return os.fstat(file.fileno()).st_size > t["disk"]
    finally:
        os.unlink("filler")


def fill_folder(t):
    try:
        for number in range(t["files"] * 2):
            os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY))
    finally:
        for number in range(t["files"] * 2):
            if os.path.exists(f"f{number}"):
                os.unlink(f"f{number}")
    return True


def fill_memory(t):
    try:
        return len(bytearray(t["memory"] + (64 << 20)))
    except MemoryError:
        return False


def fill_process_table(t):
    born = []
    try:
        for _ in range(t["processes"] * 2):
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            born.append(pid)
    finally:
        for pid in born:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return True


# Steps of their own: what they do shows in how they end, or in what is left of them.


def fill_memory_together(t):
    each = t["memory"] // 2
    for _ in range(6):
        if os.fork() == 0:
            kept = bytearray(os.urandom(1 << 20) * (each >> 20))
            time.sleep(3 if kept else 0)
            os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return True


def fill_shared_memory(t):
    kept = []
    for _ in range(6):
        kept.append(mmap.mmap(-1, t["memory"] // 2))
        kept[-1].write(os.urandom(1 << 20) * (t["memory"] // 2 >> 20))
    time.sleep(3)
    return len(kept)


def flood(t):
    for _ in range(40):
        os.write(1, b"x" * 65_535 + b"\n")
    return True


def leave_orphan(t):
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(t["long"])
        os._exit(0)
    os.wait()
    return True


def outlive_timeout(t):
    leave_orphan(t)
    for fd in (0, 1, 2):
        os.close(fd)
    time.sleep(t["long"])


def fork_for_ever(t):
    """One chain is too quick to be looked at, one is slow enough to be seen."""
    end = time.monotonic() + t["long"]
    for pause in (0, 0.2):
        if os.fork() == 0:
            os.setsid()
            while time.monotonic() < end:
                if os.fork():
                    os._exit(0)
                time.sleep(pause)
            os._exit(0)
    time.sleep(t["long"])


def run(names, t):
    said = {}
    for name in names:
        try:
            said[name] = bool(globals()[name](t))
        except OSError:
            said[name] = False
    with open(os.environ["WF_OUTPUT"], "w") as output:
        json.dump(said, output)
