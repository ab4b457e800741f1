"""A quiet corner of this machine for one server and one client, and an account of what each used.

What is set, and why each is needed for numbers that mean something:

- A network namespace of our own: nothing else talks on its loopback, and its TCP settings end with
  this process.
- A 4 MiB default receive buffer: loopback segments are up to 64 KiB, small ones shrink the
  advertised window to nothing, and the sender then waits 200 ms to avoid silly windows.
- Server and client on cores of their own, by affinity.
- `nice` -20 and, where the kernel groups tasks by session, the session's group at -20 too:
  `nice` alone has no effect between sessions there.
- ksoftirqd at -20: a server at -20 starves it otherwise, and packets wait or are sent again.
- CPU time from a cgroup of the v2 hierarchy, which counts all children, and which no scheduler
  setting depends on (a group of the v1 `cpu` hierarchy would take the tasks out of their session's
  group).

Everything is undone when the `Machine` is left. All of it needs root.
"""

import contextlib
import ctypes
import os
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field

NEW_NETWORK = 0x40000000
HIGHEST, NORMAL = -20, 0
SAMPLE_S = 0.04
RECEIVE_BUFFER = "4096 4194304 33554432"


class NotPossible(Exception):
    """This machine cannot give what the bench needs; the text says what to do."""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def group_root():
    """Returns where the v2 hierarchy of cgroups is mounted."""
    for line in read("/proc/self/mounts").splitlines():
        fields = line.split()
        if fields[2] == "cgroup2":
            return fields[1]
    raise NotPossible("no cgroup v2 hierarchy is mounted; mount one: mount -t cgroup2 none /mnt")


def in_session_at(priority):
    """Gives this process and its session's group the priority; for a process about to run."""
    os.setpriority(os.PRIO_PROCESS, 0, priority)
    # Without the file, the kernel does not group tasks by session.
    with contextlib.suppress(OSError):
        write("/proc/self/autogroup", str(priority))


@dataclass
class Group:
    """A cgroup: the processes of one server or client, with all their children."""

    path: str

    def cpu_s(self):
        """Returns the CPU seconds that its processes have used, those that ended included."""
        return int(re.search(r"usage_usec (\d+)", read(self.path + "/cpu.stat"))[1]) / 1e6

    def processes(self):
        return [int(line) for line in read(self.path + "/cgroup.procs").split()]

    def kill(self):
        write(self.path + "/cgroup.kill", "1")
        deadline = time.monotonic() + 10
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.01)


@dataclass
class Usage:
    """What a client used while it ran; times on the monotonic clock in ns."""

    started_ns: int
    ended_ns: int = 0
    exit_code: int | None = None
    timed_out: bool = False
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0
    most_processes: int = 0
    others_cpu: float = 0.0
    samples: list = field(default_factory=list)

    def cpu_between(self, start_ns, end_ns):
        """Returns the CPU seconds used between two moments, interpolated between samples."""
        return self.cpu_at(end_ns) - self.cpu_at(start_ns)

    def cpu_at(self, moment):
        before = (self.started_ns, 0.0)
        for after in self.samples + [(self.ended_ns, self.cpu_s)]:
            if after[0] >= moment:
                span = after[0] - before[0]
                share = (moment - before[0]) / span if span else 1.0
                return before[1] + (after[1] - before[1]) * max(0.0, share)
            before = after
        return self.cpu_s


def anonymous_kb(pid):
    """Returns the anonymous memory of a process in KiB, 0 when it is gone."""
    try:
        found = re.search(r"RssAnon:\s+(\d+)", read(f"/proc/{pid}/status"))
    except OSError:
        return 0
    return int(found[1]) if found else 0


def busy_s():
    """Returns the seconds that all cores together have been busy, stolen time included."""
    fields = [int(x) for x in read("/proc/stat").split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


class Machine:
    """The prepared machine; use it as a context manager, from a process with one thread."""

    def __init__(self, server_core=None, client_cores=None, priority=HIGHEST):
        self.priority = priority
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            raise NotPossible("server and client need a core each, and this machine has one")
        self.server_core = cores[0] if server_core is None else server_core
        self.client_cores = client_cores or [cores[-1]]
        free = [c for c in cores if c != self.server_core and c not in self.client_cores]
        # The bench itself wakes 25 times a second for well under a millisecond: with the server,
        # where that delays what the server then stamps, and not with the client, where it would
        # look like an error of the client.
        self.own_core = free[0] if free else self.server_core
        self.groups, self.undo = {}, []

    def __enter__(self):
        # Ended from outside, the settings are undone all the same, also where a shell that put
        # this into the background made it ignore interrupts.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: sys.exit(128 + number))
        if os.geteuid() != 0:
            raise NotPossible(
                "the bench sets priorities, a network namespace and cgroups: run it as root"
            )
        try:
            self.prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def prepare(self):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(NEW_NETWORK) != 0:
            raise NotPossible(f"no network namespace: {os.strerror(ctypes.get_errno())}")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        write("/proc/sys/net/ipv4/tcp_rmem", RECEIVE_BUFFER)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        if self.priority < NORMAL:
            for core in {self.server_core, *self.client_cores}:
                self.raise_softirq(core)
        root = group_root()
        for name in ("server", "client", "neighbour"):
            group = Group(f"{root}/load-client-{os.getpid()}-{name}")
            os.mkdir(group.path)
            self.groups[name] = group
            self.undo.append(lambda group=group: (group.kill(), os.rmdir(group.path)))
        os.sched_setaffinity(0, {self.own_core})
        os.setpriority(os.PRIO_PROCESS, 0, self.priority)
        previous = read("/proc/self/autogroup").split()[-1] if os.path.exists(
            "/proc/self/autogroup") else None
        if previous is not None:
            write("/proc/self/autogroup", str(self.priority))
            self.undo.append(lambda: write("/proc/self/autogroup", previous))

    def raise_softirq(self, core):
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and read(f"/proc/{name}/comm").strip() == f"ksoftirqd/{core}":
                    pid = int(name)
                    was = os.getpriority(os.PRIO_PROCESS, pid)
                    os.setpriority(os.PRIO_PROCESS, pid, HIGHEST)
                    self.undo.append(
                        lambda pid=pid, was=was: os.setpriority(os.PRIO_PROCESS, pid, was))
                    return
            except FileNotFoundError:
                continue

    def __exit__(self, *_):
        while self.undo:
            try:
                self.undo.pop()()
            except OSError as error:
                print(f"could not undo a setting: {error}", flush=True)

    def spawn(self, group, command, cores, priority=None, **options):
        """Starts a process in a group, session and set of cores of its own.

        Returns it with the moment just before its program began, on the monotonic clock in ns.
        """
        receiver, sender = os.pipe()

        def prepare():
            write(self.groups[group].path + "/cgroup.procs", "0")
            os.sched_setaffinity(0, cores)
            in_session_at(self.priority if priority is None else priority)
            os.write(sender, str(time.monotonic_ns()).encode())

        try:
            child = subprocess.Popen(
                command, preexec_fn=prepare, start_new_session=True, stdin=subprocess.DEVNULL,
                **options)
            return child, int(os.read(receiver, 32))
        finally:
            os.close(receiver)
            os.close(sender)

    def run(self, command, timeout_s, priority=None, cores=None, **options):
        """Runs a client to its end and returns what it used."""
        priority = self.priority if priority is None else priority
        group, server = self.groups["client"], self.groups["server"]
        base, server_base, busy_base = group.cpu_s(), server.cpu_s(), busy_s()
        child, started = self.spawn("client", command, cores or self.client_cores, priority,
                                    **options)
        usage = Usage(started)
        deadline = time.monotonic() + timeout_s
        seen, tick = set(), 0
        while child.poll() is None:
            usage.samples.append((time.monotonic_ns(), group.cpu_s() - base))
            if tick % 5 == 0:
                self.look_after(group, priority, seen, usage)
            if time.monotonic() > deadline:
                usage.timed_out = True
                group.kill()
            tick += 1
            time.sleep(SAMPLE_S)
        usage.ended_ns = time.monotonic_ns()
        usage.exit_code = child.returncode
        group.kill()  # what a client leaves behind must not disturb the next one
        usage.cpu_s = group.cpu_s() - base
        wall = (usage.ended_ns - started) / 1e9
        ours = usage.cpu_s + server.cpu_s() - server_base
        usage.others_cpu = max(0.0, (busy_s() - busy_base - ours) / wall)
        return usage

    def look_after(self, group, priority, seen, usage):
        """Samples memory, and gives new sessions of the client the client's priority."""
        processes = group.processes()
        usage.most_processes = max(usage.most_processes, len(processes))
        usage.peak_rss_mb = max(usage.peak_rss_mb, sum(map(anonymous_kb, processes)) / 1024)
        for pid in set(processes) - seen:
            seen.add(pid)
            with contextlib.suppress(OSError):
                write(f"/proc/{pid}/autogroup", str(priority))

    def neighbour(self, core):
        """Starts a process that keeps a core busy at normal priority; kill its group to end it."""
        return self.spawn("neighbour", ["sh", "-c", "while :; do :; done"], [core], NORMAL)[0]

    def end_neighbour(self, child):
        self.groups["neighbour"].kill()
        child.wait()


def end(child):
    """Ends a process that was started here."""
    child.send_signal(signal.SIGTERM)
    try:
        child.wait(10)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
