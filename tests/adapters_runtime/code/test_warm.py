"""Steps whose interpreter was started before them: the same to them, and sooner there."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation.config import LANDLOCK, NAMESPACE
from adapters_runtime.sandbox.isolation_level import Isolation
from wfcore.model.workflow import Language
from wfcore.ports.runtime import StepEnd, StepJob
from wfcore.testing.contracts.steps import Lines, job, silent, until

PYTHON = """
import sys, os, signal, locale
import atexit, json
seen = [
    sorted(name for name in sys.modules if name != "zipimport"), sys.path, list(sys.argv),
    sys.executable, sys.prefix, list(sys.flags), sys.stdout.encoding, sys.stdout.errors,
    sys.stdin.read(), sys.getrecursionlimit(), __name__, __file__, sorted(globals()),
    [str(signal.getsignal(number)) for number in (2, 13, 15, 17, 25)], os.getcwd(),
    sorted(os.environ.items()), sorted(os.listdir("/proc/self/fd")), sys.dont_write_bytecode,
    locale.getpreferredencoding(False), os.environb.get(b"WF_VAR_x"), sys.getswitchinterval(),
    str(type(__loader__)) if "__loader__" in globals() else None, __import__("gc").isenabled(),
]
print(json.dumps([str(one) for one in seen]))
"""
NODE = """
const seen = [
  process.argv, process.execArgv, process.cwd(), Object.entries(process.env).sort(),
  Object.getOwnPropertyNames(globalThis).sort(), require.main === module, __filename,
  Object.keys(require.cache), module.paths, process._eval, module.id, typeof process.stdin.fd,
  require("fs").readdirSync("/proc/self/fd").filter(fd => fd < 10).length < 10,
];
console.log(JSON.stringify(seen));
"""
RUBY = """
seen = [
  __FILE__, $0, ARGV, Dir.pwd, ENV.to_h.sort, __method__.inspect, self.to_s, $LOADED_FEATURES,
  Object.constants.sort - [:RUBYGEMS_ACTIVATION_MONITOR], DATA.read, $stdout.sync, __dir__,
  local_variables.sort, Encoding.default_external.to_s, Encoding.default_internal.to_s,
]
require "json"
puts JSON.dump(seen)
__END__
the data
"""
SOURCES = {Language.PYTHON: PYTHON, Language.JAVASCRIPT: NODE, Language.RUBY: RUBY}


ENDS = {
    Language.PYTHON: [
        "def deep():\n    raise ValueError('no')\ndeep()",
        "import sys; sys.exit('some words')",
        "raise SystemExit(300)",
        "import sys; sys.exit(None)",
        "print(1",
        "raise KeyboardInterrupt",
        "import os; os._exit(4)",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import os; left = open(os.environ['WF_OUTPUT'], 'w'); left.write('[1]')",
        "import atexit; atexit.register(print, 'last')",
        "from threading import Timer; Timer(0.05, lambda: print(2)).start()",
        "class D:\n    def __del__(self): print('gone')\nd = D()",
        "import sys; sys.stdout = open('/proc/self/fd/1', 'w'); print('mine')",
        "import logging; logging.basicConfig(); logging.shutdown = 1; logging.warning('w')",
        "import ctypes; ctypes.CDLL(None).puts(b'not flushed by C')",
        "import os; print('lost'); os.close(1)",
        "class D:\n    def __del__(self): 1/0\nd = D()",
        "from threading import Thread\nimport time, __main__\n"
        "def work():\n    while True: time.sleep(0)\n"
        "Thread(target=work, daemon=True).start()\nclass D:\n"
        "    def __del__(self, sleep=time.sleep): sleep(0.05)\nd = D()\nraise SystemExit('over')",
        "from threading import Thread\ndef work():\n    while True: pass\n"
        "Thread(target=work, daemon=True).start()\n"
        "class D:\n    def __del__(self): print(1)\nd = D()",
        "class D:\n    def __del__(self): print(os.getpid() > 0)\nimport os; d = D(); d.d = d",
        "import atexit; atexit.register(int, 'no')",
        "import multiprocessing as m\nwith m.Pool(2) as p: print(p.map(abs, [-1, -2]))",
        "import sys; print('out'); print('err', file=sys.stderr); 1/0",
        "\ufeffprint('a mark of order')",
        "# -*- coding: latin-1 -*-\nprint(len('\u00e9'))",
    ],
    Language.JAVASCRIPT: [
        "function deep() { throw new Error('no') }\ndeep()",
        "process.exitCode = 5",
        "Promise.reject(new Error('nobody listens'))",
        "import fs from 'node:fs'; console.log(await Promise.resolve(typeof fs.readFileSync))",
        "const x = ;",
        "setTimeout(() => console.log('later'), 20)",
        "process.on('exit', () => console.log('last'))",
        "#!/usr/bin/env node\nconsole.log(1)",
    ],
    Language.RUBY: [
        "def deep = raise('no')\ndeep",
        "exit 5",
        "abort 'some words'",
        "def x(",
        "puts 'once'; eval('def x(')",
        "puts({ a: 1, a: 2 }.size)",
        "puts 1\n__END__\ndef x(",
        "at_exit { puts 'last' }",
        "Thread.new { sleep 0.02; puts 2 }.join",
        "puts __FILE__ == $0, defined?(DATA).inspect",
    ],
}
"""Ways in which a program ends."""


class Pair(NamedTuple):
    """A runner whose interpreters are started ahead, and one that starts them with the job."""

    warm: CodeStepRunner
    cold: CodeStepRunner

    async def both(self, asked: StepJob) -> tuple[StepEnd, StepEnd]:
        return await self.warm.run(asked, silent), await self.cold.run(asked, silent)


@pytest.fixture(params=[NAMESPACE, LANDLOCK])
async def pair(request: pytest.FixtureRequest, tmp_path: Path, files: Any) -> AsyncIterator[Pair]:
    isolation = Isolation(forced=request.param)
    made = Pair(
        *(
            CodeStepRunner(tmp_path / "steps", files, lambda: "a", isolation=isolation, warm=warm)
            for warm in (True, False)
        )
    )
    if (await made.warm.level()).name != request.param:
        pytest.skip(f"no level {request.param} here")
    yield made
    for runner in made:
        await runner.close()


@pytest.mark.parametrize("language", SOURCES)
async def test_the_world_is_the_same(
    pair: Pair, able: Callable[[Language], None], language: Language
) -> None:
    """A step sees no trace of the early start: modules, names, environment, descriptors."""
    able(language)
    await pair.warm.run(job("", language), silent)  # from now on one is ready
    asked = job(SOURCES[language], language, environment={"WF_VAR_x": "\u00fc\n= ' \" $x"})
    warm, cold = await pair.both(asked)
    assert (warm.error, cold.error) == (None, None)
    same_folder = [_without_numbers(end.output) for end in (warm, cold)]
    assert same_folder[0] == same_folder[1]


@pytest.mark.parametrize("language", ENDS)
async def test_the_ends_are_the_same(
    pair: Pair, able: Callable[[Language], None], language: Language
) -> None:
    """However a program ends: the same output, the same status, the same words."""
    able(language)
    for source in ENDS[language]:
        warm, cold = await pair.both(job(source, language))
        assert _without_numbers(str(warm)) == _without_numbers(str(cold)), source


async def test_a_cold_start_has_a_hash_seed_of_its_own(pair: Pair) -> None:
    """Without interpreters that are started ahead no two Python steps share a seed."""
    seeds = [(await pair.cold.run(job("print(hash('a'))"), silent)).output for _ in range(3)]
    assert len({*map(str, seeds)}) == len(seeds)


@pytest.mark.parametrize("language", SOURCES)
async def test_never_two_jobs(
    pair: Pair, able: Callable[[Language], None], language: Language
) -> None:
    """Each step has a process of its own: what one leaves in it, the next does not find."""
    able(language)
    source = {
        Language.PYTHON: "import json; print(json.dumps(hasattr(json, 'm'))); json.m = 1",
        Language.JAVASCRIPT: "console.log('m' in globalThis); globalThis.m = 1",
        Language.RUBY: "p defined?($m) == 'global-variable'; $m = 1",
    }[language]
    for _ in range(4):
        assert (await pair.warm.run(job(source, language), silent)).output is False


async def test_random_numbers_are_its_own(pair: Pair) -> None:
    """Python steps forked from one process draw other random numbers, and know their thread."""
    source = (
        "import random, threading as t, signal\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print(random.random()))\n"
        "main = t.main_thread().ident\n"
        "other = t.Thread(target=lambda: signal.pthread_kill(main, signal.SIGUSR1))\n"
        "other.start(); other.join()"
    )
    drawn = [(await pair.warm.run(job(source), silent)).output for _ in range(4)]
    assert len(set(drawn)) == 4
    assert all(isinstance(number, float) for number in drawn)


async def test_the_process_list_shows_the_program_and_the_execution(pair: Pair) -> None:
    """The words of the program and whose step it is, and nothing of what stood there before."""
    source = "import json; print(json.dumps(open('/proc/self/cmdline').read().rstrip(chr(0))))"
    await pair.warm.run(job("", Language.PYTHON), silent)
    shown = (await pair.warm.run(job(source), silent)).output
    assert isinstance(shown, str)
    assert re.fullmatch(r"WF_EXECUTION_ID=exec_\w+", shown.split("\0")[-1])


async def test_lines_come_at_once(pair: Pair, able: Callable[[Language], None]) -> None:
    """With monitoring, lines leave a waiting interpreter as they are written."""
    sources = {
        Language.PYTHON: "import time; print('now'); time.sleep(60)",
        Language.RUBY: "puts 'now'; sleep 60",
        Language.JAVASCRIPT: "console.log('now'); setTimeout(() => 0, 60000)",
    }
    for language, source in sources.items():
        able(language)
        lines = Lines()
        running = asyncio.ensure_future(pair.warm.run(job(source, language, log=True), lines))
        await until(lambda lines=lines: lines.of("stdout") == "now\n", within_s=60)
        running.cancel()
        await asyncio.wait({running})


def _without_numbers(value: Any) -> str:
    """The text of *value* without what differs between any two starts, and without the frames
    that Node and the fork server add."""
    ending = r"Traceback \(most recent call last\):\\n  File [^ ]*python_fork.py[^\\]*\\n"
    value = re.sub(ending, "", str(value)).replace("\\'", "'").replace('"', "'")
    frames = r"\\n    at [^\\]*(node:internal|\[eval\])[^\\]*"
    folders = r"/\d+-\d+(/\d+)?"
    return re.sub(r"0x[0-9a-f]+|\d{2,}", "", re.sub(folders, "/F", re.sub(frames, "", value)))
