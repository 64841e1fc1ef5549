"""
Every probe, in one table: what it tries, and the levels that do not let it.

`n` namespace, `u` uid, `l` landlock, `p` process. Where a level does not hold, the probe must
succeed exactly if it succeeds with no containment at all; and with none it must succeed, or it
would prove nothing: on every machine, or where *bites* says.
"""

import os
from collections.abc import Callable
from itertools import chain

from attrs import frozen

from adapters_runtime.sandbox.isolation import landlock
from adapters_runtime.sandbox.isolation.config import LADDER

SHORT = dict(zip("nulp", LADDER, strict=True))


def anywhere() -> bool:
    return True


def as_root() -> bool:
    return os.geteuid() == 0


def where_it_has_a_name() -> bool:
    return os.uname().nodename != "localhost"


def where_somebody_lives() -> bool:
    home = os.path.expanduser("~")
    return os.access(home, os.R_OK) and bool(os.listdir(home))


def seldom() -> bool:
    """Depends on how the kernel was built or set; where it can be done at all, it bites."""
    return False


@frozen
class Probe:
    """
    *name* is the function in `inside`. *since*: the version of Landlock that the level `landlock`
    needs to hold it. *alone*: it is a step of its own, judged from outside. *network*: its step
    says `network: true`; *listen*: and `listen: true`. *counted*: levels that hold it too, where a
    control group counts. *granted*: it is what a step may do; `held` says where it is refused.
    *given*: its step reads the files of an earlier step, and a later step judges it.
    """

    name: str
    says: str
    held: str
    bites: Callable[[], bool] = anywhere
    since: int = 1
    alone: bool = False
    network: bool = False
    listen: bool = False
    counted: str = ""
    granted: bool = False
    given: bool = False

    @property
    def key(self) -> str:
        """Some are tried with network and without."""
        kind = "listening." if self.listen else "open." if self.network else ""
        return f"{kind}{self.name}"

    def is_held_at(self, level: str, counted: bool) -> bool:
        if level == SHORT["l"] and landlock.version() < self.since:
            return False
        letters = self.held + (self.counted if counted else "")
        return level in {SHORT[letter] for letter in letters}


P = Probe

FILES = (
    P("read_database", "read the server's database", "nul"),
    P("read_signing_key", "read the key that signs download links", "nul"),
    P("list_data_folder", "list the data folder", "nul"),
    P("write_data_folder", "write into the data folder", "nul"),
    P("follow_link", "read the database through a link of its own", "nul"),
    P("link_file", "give a file of the server's a name in its own folder", "nul"),
    P("neighbours_file", "read another step's folder", "nul"),
    P("read_outside", "read a file that everybody may read", "nul"),
    P("write_outside", "write into a folder that everybody may write to", "nul"),
    P("list_outside", "list a folder that everybody may list", "nul"),
    P("watch_outside", "be told what happens in a folder outside", "nul"),
    P("watch_shared", "be told when others open a file that all may read (inotify)", "ul"),
    P("watch_shared_for_all", "by fanotify", "nul"),
    P("lock_shared", "lock a file that all may read, which others see (flock)", ""),
    P("list_home", "list the home of the server's user", "nul", where_somebody_lives),
    P("list_logs", "list the logs of the machine", "nul"),
    P("list_devices_of_kernel", "look around in /sys", "nul"),
    P("read_shadow", "read /etc/shadow", "nul", as_root),
    P("write_system", "write to the system's folders", "nul", as_root),
    P("remove", "remove a file of the server's", "nul"),
    P("truncate", "empty a file of the server's", "nul"),
    P("change_mode", "change the mode of a file of the server's", "nul"),
    P("change_shared_mode", "change the mode of a file that it may read", "nul"),
    P("change_shared_owner", "change its owner", "nul"),
    P("change_shared_times", "change its times", "nul"),
    P("change_shared_attributes", "change its extended attributes", "nul", seldom),
    P("change_shared_flags", "change its flags", "nul", seldom),
    P("change_shared_by_newest_call", "change them by the newest call for it", "nul", seldom),
    P("lease_shared", "hold up others who open it", "nul"),
    P("open_devices", "open a device other than /dev/null and its like", "nul"),
    P("make_device", "make a device", "nul", as_root),
    P("write_kernel_settings", "write to the kernel's settings", "nul", as_root),
    P("stat_database", "learn that the database is there, and its size", "nu"),
)


def given(name: str, says: str) -> Probe:
    """Where a step could change what it sees, it sees a copy."""
    return P(name, says, "nulp", given=True)


GIVEN = (
    given("write_given", "write into a file of an earlier step, which later steps read"),
    given("write_given_by_proc", "by opening it anew, below /proc"),
    given("empty_given", "empty it"),
    given("replace_given", "put another file in its place"),
    given("remove_given", "remove it"),
    given("remount_given", "by mounting it anew"),
    P(
        "state_by_link",
        "have the server read a file for it, by a link as its state",
        "nulp",
        alone=True,
    ),
    P("state_by_name", "by a second name of a file as its state", "nulp", alone=True),
    P("state_by_pipe", "keep the server waiting, by a pipe as its state", "nulp", alone=True),
    P(
        "state_by_size",
        "have it read more than fits, by a large file as its state",
        "nulp",
        alone=True,
    ),
)
PROCESSES = (
    P("read_environment", "read the environment of a process of the server's user", "nul"),
    P("read_map", "read where its memory lies", "nul"),
    P("read_memory", "read its memory", "nul", as_root),
    P("trace", "trace it", "nul", as_root),
    P("list_processes", "see its command line", "nul"),
    P("signal_server", "signal the server", "nul", since=6),
    P("signal_victim", "signal a process of the server's user", "nul", since=6),
    P("signal_by_descriptor", "signal such a process by its descriptor", "nul", since=6),
    P("signal_supervisor", "signal its own supervisor", "nul", since=6),
    P("limit_victim", "change its limits", "nul"),
    P("slow_victim", "change its priority", "nul"),
    P("move_victim", "choose its processors", "nul"),
    P("doom_victim", "have it killed first when memory runs out", "nul"),
    P("advise_victim", "have its memory taken from it", "nul", as_root),
    P("take_descriptor", "take a descriptor of it", "nul", as_root),
    P("slow_user", "change the priority of all processes of its user", "nul"),
    P("limit_parent", "change the limits of what the next step is forked from", "nul"),
    P("slow_parent", "change its priority", "nul"),
    P("move_parent", "choose its processors", "nul"),
    P("reschedule_parent", "choose how it is scheduled", "nul"),
    P("queue_parent", "choose the order of its disk requests", "nul"),
    P("doom_parent", "have it killed first when memory runs out", "nul"),
    P("delay_parent", "have its timers go off late", "nul", as_root),
    P("dump_parent", "choose what is kept of it if it crashes", "nul"),
    P("signal_neighbour", "signal another step", "nul", since=6),
    P("neighbours_environment", "read another step's environment", "nul"),
    P("supervisors_environment", "read its supervisor's environment", "nul"),
    P("inherited_secret", "find a secret in its own environment", "nulp"),
    P("inherited_descriptors", "find a descriptor that the server left open", "nulp"),
    P("name_of_machine", "learn the name of the machine", "n", where_it_has_a_name),
)
KERNEL = (
    P("gain_privileges", "gain privileges from a program that gives them", "nulp"),
    P("keep_capabilities", "have a capability", "nul", as_root),
    P("new_user_namespace", "make a user namespace", "nul", seldom),
    P("clone_into_namespace", "clone into a namespace", "nul", seldom),
    P("clone3_into_namespace", "clone3 into a namespace", "nul", seldom),
    P("enter_namespace", "enter a namespace of the server's", "nul", seldom),
    P("mount", "mount", "nul", seldom),
    P("change_root", "change its root", "nul", as_root),
    P("load_program", "talk to bpf", "nul", seldom),
    P("count_events", "open a performance counter", "nul", seldom),
    P("handle_faults", "handle page faults itself", "nul", seldom),
    P("use_keys", "use the kernel's keyrings", "nul", seldom),
    P("use_ring", "use io_uring", "nul", seldom),
    P("open_by_handle", "get a handle of a file", "nul", seldom),
    P("personality", "change its personality", "nul"),
    P("read_kernel_log", "ask for the kernel's log", "nul", as_root),
    P("memory_nobody_counts", "make memory files, which nobody counts", "nul"),
    P("shared_segment", "make shared segments, which outlive it", "nul"),
    P("segment_of_others", "use a shared segment of the server's user", "nul"),
    P("message_queue", "make message queues, which outlive it", "nul", seldom),
)
NETWORK = (
    P("connect_to_server", "connect to the server's port", "nul"),
    P("connect_to_port", "connect to another port of the machine", "nul"),
    P("send_datagram", "send a datagram", "nul"),
    P("connect_to_path", "connect to a socket by its path", "nul"),
    P("connect_to_abstract", "connect to an abstract socket", "nul"),
    P("list_interfaces", "list the network interfaces", "nul", seldom),
    P("raw_packets", "have raw packets", "nul", seldom),
    P("to_the_hypervisor", "have a socket to the hypervisor", "nul", seldom),
    P("kernel_crypto", "have a socket of the kernel's cryptography", "nul", seldom),
    P("kernel_events", "have a socket of the kernel's events", "nul"),
)
OPEN_NETWORK = (
    P("connect_to_server", "connect to the server's port", "nul", network=True),
    P("connect_by_other_name", "by another address of the loopback", "nul", network=True),
    P("connect_by_own_address", "by the machine's own address", "nul", seldom, network=True),
    P("connect_as_ipv6", "by IPv4 written as IPv6", "nul", seldom, network=True),
    P("connect_without_waiting", "without waiting", "nul", network=True),
    P("connect_by_sending", "by sending at once (TCP Fast Open)", "nul", seldom, network=True),
    P("connect_while_it_looks", "while another thread changes the address", "nul", network=True),
    P("connect_to_path", "connect to a socket by its path", "nul", network=True),
    P("connect_to_abstract", "connect to an abstract socket", "nul", network=True),
    P("kernel_events", "have a socket of the kernel's events", "nul", network=True),
    P("listen_on_loopback", "listen at a port of the loopback", "nul", network=True),
    P("listen_everywhere", "at every address of the machine", "nul", network=True),
    P("listen_by_ipv6", "at the server's port, by IPv6", "nul", network=True),
    P("listen_without_address", "without a port of its choice", "nul", network=True),
    P("listen_as_relay", "as a mail relay of the server's that is down", "nul", network=True),
    P("listen_by_other_name", "as it, by another address of the loopback", "nul", network=True),
    P("listen_as_mapped", "as it, by IPv4 written as IPv6", "nul", network=True),
    P("listen_while_it_looks", "as it, while another thread changes the port", "nul", network=True),
    P("share_a_port", "share a port with others who listen", "nul", network=True),
    P("choose_ports", "have the kernel choose a port of its choice", "nul", seldom, network=True),
    P("take_datagrams", "take a port for datagrams", "nul", network=True),
    P("take_datagrams_as_relay", "that of a server that is down", "nul", network=True),
    P("take_datagrams_by_ipv6", "the server's port, by IPv6", "nul", network=True),
    P(
        "other_protocol",
        "have another protocol, with calls of its own",
        "nul",
        seldom,
        network=True,
    ),
    P("be_told_of_routes", "be told of changes of the network", "nul", seldom, network=True),
    P("join_routes", "by joining the group for it afterwards", "nul", seldom, network=True),
    P(
        "connect_anywhere_else",
        "connect to anything else, as it should",
        "",
        network=True,
        granted=True,
    ),
)


def listening(name: str, says: str, held: str = "nulp", granted: bool = False) -> Probe:
    """At the lowest level no step listens that says so."""
    return P(name, says, held, network=True, listen=True, granted=granted)


LISTENING = (
    listening("listen_everywhere", "listen at every address of the machine"),
    listening("listen_by_ipv6", "listen at the server's port, by IPv6"),
    listening("listen_without_address", "listen without a port of its choice"),
    listening("listen_as_relay", "listen as a mail relay of the server's that is down"),
    listening("listen_by_other_name", "listen as it, by another address of the loopback"),
    listening("listen_as_mapped", "listen as it, by IPv4 written as IPv6"),
    listening("listen_while_it_looks", "listen as it, while another thread changes the port"),
    listening("take_datagrams_as_relay", "take its port for datagrams"),
    listening("take_datagrams_by_ipv6", "take the server's port for datagrams, by IPv6"),
    listening("share_a_port", "share a port with others who listen"),
    listening("listen_on_loopback", "listen on the loopback, as it should", "p", granted=True),
)
AMOUNTS = (
    P("fill_disk", "write more bytes than its folder may hold", "n"),
    P("fill_folder", "make more files than its folder may hold", "n"),
    P("fill_memory", "take more memory than a process may", "nulp"),
    P("fill_process_table", "start more processes than a step may", "nu", counted="lp"),
    P("fill_memory_together", "take more memory with several processes", "nulp", alone=True),
    P("fill_memory_unread", "with such that nobody may look into", "nulp", alone=True),
    P("fill_memory_headless", "with such whose first thread has ended", "nulp", alone=True),
    P("fill_shared_memory", "take more memory by sharing it", "nulp", alone=True),
    P("drop_shared_memory", "by sharing and dropping it", "nul", alone=True, counted="p"),
    P("drop_shared_zeros", "by sharing zeros and dropping them", "nul", alone=True, counted="p"),
    P("fill_page_tables", "by tables of pages that are not there", "nulp", alone=True),
    P(
        "fill_sockets",
        "take more memory in sockets",
        "",
        alone=True,
        counted="nulp",
    ),
    P("flood", "write more output than a step may", "nulp", alone=True),
)
ENDS = (
    P("leave_orphan", "leave a daemon behind that ignores signals", "nulp", alone=True),
    P("outlive_timeout", "be alive after its timeout", "nulp", alone=True),
    P("fork_for_ever", "be alive then, as one that forks and exits for ever", "nulp", alone=True),
)
GROUPS = {
    "Files": FILES,
    "Files of earlier steps, and state": GIVEN,
    "Processes": PROCESSES,
    "The kernel": KERNEL,
    "Network, of a step without `network: true`": NETWORK,
    "Network, of a step with `network: true`": OPEN_NETWORK,
    "Network, of a step with `network: true` and `listen: true`": LISTENING,
    "Amounts": AMOUNTS,
    "The end": ENDS,
}
PROBES = {probe.key: probe for probe in chain.from_iterable(GROUPS.values())}
