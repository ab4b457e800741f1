//! What the kernel says of processes: who descends from whom, who listens where, what is mapped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use procfs::process::{FDTarget, MMPermissions, MMapPath, MemoryMap, Process, all_processes};
use rustix::process::{Pid, Signal, kill_process};

/// The variable by which every process of a run is known, also after it has left its group and its parent.
pub const RUN_MARKER: &str = "ISOBENCH_RUN";

/// A process, as much of it as evidence needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent: u32,
    /// Its command's name.
    pub command: String,
    /// Clock ticks from boot to its start, which with the id names it for ever.
    pub started: u64,
    /// Whether it has ended but wasn't reaped.
    pub zombie: bool,
}

/// A listening TCP socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// The socket's inode.
    pub inode: u64,
    /// The address it listens on.
    pub address: std::net::SocketAddr,
}

/// Returns every process that can be seen; one that ends meanwhile is left out.
pub fn processes() -> Vec<ProcessInfo> {
    let Ok(all) = all_processes() else { return Vec::new() };
    all.flatten().filter_map(|process| info(&process)).collect()
}

/// Returns a process, if there is one by that id.
pub fn find(process: u32) -> Option<ProcessInfo> {
    info(&open(process)?)
}

fn info(process: &Process) -> Option<ProcessInfo> {
    let stat = process.stat().ok()?;
    Some(ProcessInfo {
        pid: u32::try_from(stat.pid).ok()?,
        parent: u32::try_from(stat.ppid).ok()?,
        command: stat.comm,
        started: stat.starttime,
        zombie: stat.state == 'Z' || stat.state == 'X',
    })
}

/// Returns the living descendants of `root`, without `root` itself.
pub fn descendants(root: u32) -> Vec<ProcessInfo> {
    let mut children: BTreeMap<u32, Vec<ProcessInfo>> = BTreeMap::new();
    for process in processes() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    let mut seen = BTreeSet::from([root]);
    while let Some(parent) = open.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            if seen.insert(child.pid) {
                open.push(child.pid);
                found.push(child);
            }
        }
    }
    found.retain(|process| !process.zombie);
    found
}

/// Returns the processes of this user, other than this one, whose environment has [`RUN_MARKER`] set to `run`.
pub fn marked(run: &str) -> Vec<ProcessInfo> {
    marked_by(RUN_MARKER, |value| value == run)
}

/// Returns the processes of this user, other than this one, whose environment has a variable with a value that is meant.
pub fn marked_by(variable: &str, is_meant: impl Fn(&std::ffi::OsStr) -> bool) -> Vec<ProcessInfo> {
    let Ok(all) = all_processes() else { return Vec::new() };
    let this = std::process::id();
    let mut found = Vec::new();
    for process in all.flatten() {
        let is_marked = process
            .environ()
            .is_ok_and(|variables| variables.get(std::ffi::OsStr::new(variable)).is_some_and(|value| is_meant(value)));
        if is_marked {
            found.extend(info(&process).filter(|found| found.pid != this && !found.zombie));
        }
    }
    found
}

/// Sends SIGKILL to a process if it is still the one that was seen, not a later one with its id.
pub fn kill(process: &ProcessInfo) -> bool {
    let same = i32::try_from(process.pid)
        .ok()
        .and_then(|pid| Process::new(pid).ok())
        .and_then(|now| now.stat().ok())
        .is_some_and(|stat| stat.starttime == process.started);
    same && pid(process.pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

/// Returns whether a process is held by a signal such as SIGSTOP, or by a debugger.
pub fn is_held(process: u32) -> bool {
    open(process).and_then(|process| process.stat().ok()).is_some_and(|stat| matches!(stat.state, 'T' | 't'))
}

/// Lets a process that is held go on.
pub fn let_go(process: u32) {
    if let Some(pid) = pid(process) {
        // One that is gone can't be let go, and need not be.
        let _ = kill_process(pid, Signal::CONT);
    }
}

/// Returns a process's arguments, its program first.
pub fn arguments(process: u32) -> Vec<String> {
    open(process).and_then(|process| process.cmdline().ok()).unwrap_or_default()
}

/// Returns the kernel's id type for `pid`.
pub fn pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// The longest command line that is told, in characters.
const LONGEST_COMMAND: usize = 120;

/// Returns the command line of a process as one line, shortened, if it can be read.
pub fn command_line(process: u32) -> Option<String> {
    let words = open(process)?.cmdline().ok()?;
    let clean = |c: char| if c.is_control() || c == '`' { '\u{fffd}' } else { c };
    let text: String = words.join(" ").chars().take(LONGEST_COMMAND).map(clean).collect();
    (!text.is_empty()).then_some(text)
}

/// Returns the sockets that listen on `port`, over IPv4 and IPv6, in the network of the process `network`.
pub fn listeners(network: u32, port: u16) -> Vec<Listener> {
    let mut found = all_listeners(network);
    found.retain(|listener| listener.address.port() == port);
    found
}

/// Returns every socket on which one of these processes listens in the network of the process `network`.
pub fn listened_by(network: u32, among: &[ProcessInfo]) -> Vec<Listener> {
    let own: BTreeSet<u64> = among.iter().flat_map(|process| sockets(process.pid)).collect();
    let mut found = all_listeners(network);
    found.retain(|listener| own.contains(&listener.inode));
    found
}

fn all_listeners(network: u32) -> Vec<Listener> {
    let (v4, v6) = tcp_tables(network);
    let listens = |entry: &procfs::net::TcpNetEntry| entry.state == procfs::net::TcpState::Listen;
    let listener = |entry: procfs::net::TcpNetEntry| Listener { inode: entry.inode, address: entry.local_address };
    v4.into_iter().chain(v6).filter(listens).map(listener).collect()
}

/// Returns the TCP sockets, over IPv4 and IPv6, in the network of a process. One that is gone has none.
fn tcp_tables(network: u32) -> (Vec<procfs::net::TcpNetEntry>, Vec<procfs::net::TcpNetEntry>) {
    let Some(process) = open(network) else { return (Vec::new(), Vec::new()) };
    (process.tcp().unwrap_or_default(), process.tcp6().unwrap_or_default())
}

/// Returns the first of `among` that holds the socket with that inode.
pub fn socket_owner(inode: u64, among: impl IntoIterator<Item = u32>) -> Option<u32> {
    among.into_iter().find(|&process| sockets(process).contains(&inode))
}

fn sockets(process: u32) -> BTreeSet<u64> {
    let Some(process) = open(process) else { return BTreeSet::new() };
    let Ok(descriptors) = process.fd() else { return BTreeSet::new() };
    let socket = |target| if let FDTarget::Socket(inode) = target { Some(inode) } else { None };
    descriptors.flatten().filter_map(|descriptor| socket(descriptor.target)).collect()
}

/// Returns every file and folder that a process holds open or works in, as far as this user may know.
pub fn open_paths() -> BTreeSet<std::path::PathBuf> {
    let Ok(all) = all_processes() else { return BTreeSet::new() };
    let mut paths = BTreeSet::new();
    for process in all.flatten() {
        paths.extend(process.cwd().ok());
        let open = process.fd().into_iter().flatten().flatten();
        paths.extend(open.filter_map(
            |descriptor| {
                if let FDTarget::Path(path) = descriptor.target { Some(path) } else { None }
            },
        ));
    }
    paths
}

fn open(process: u32) -> Option<Process> {
    Process::new(i32::try_from(process).ok()?).ok()
}

/// Returns the connections of these processes, in the network of the process `network`, to addresses that aren't loopback,
/// as `command -> address`.
pub fn outside_connections(network: u32, among: &[ProcessInfo]) -> Vec<String> {
    let (v4, v6) = tcp_tables(network);
    let outside: BTreeMap<u64, std::net::SocketAddr> = v4
        .into_iter()
        .chain(v6)
        .filter(|entry| !entry.remote_address.ip().to_canonical().is_loopback() && entry.remote_address.port() != 0)
        .map(|entry| (entry.inode, entry.remote_address))
        .collect();
    if outside.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for process in among {
        for inode in sockets(process.pid) {
            if let Some(address) = outside.get(&inode) {
                found.push(format!("{} ({}) -> {address}", process.command, process.pid));
            }
        }
    }
    found
}

/// Returns the processor time that these processes have taken so far, in milliseconds, to the clock tick.
pub fn processor_ms(among: &[ProcessInfo]) -> u64 {
    let ticks = |process: &ProcessInfo| open(process.pid)?.stat().ok().map(|stat| stat.utime + stat.stime);
    let sum: u64 = among.iter().filter_map(ticks).sum();
    sum * 1000 / procfs::ticks_per_second().max(1)
}

/// Returns where a process's executable is, with links resolved.
pub fn executable(process: u32) -> Option<PathBuf> {
    open(process)?.exe().ok()
}

/// Returns a process's working folder.
pub fn working_folder(process: u32) -> Option<PathBuf> {
    open(process)?.cwd().ok()
}

/// Returns a process's environment.
pub fn environment(process: u32) -> Option<BTreeMap<String, String>> {
    let variables = open(process)?.environ().ok()?;
    let text = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
    Some(variables.iter().map(|(name, value)| (text(name), text(value))).collect())
}

/// Returns the files that a process has mapped and may execute from.
pub fn mapped_libraries(process: u32) -> BTreeSet<PathBuf> {
    let executable = |map: &MemoryMap| map.perms.contains(MMPermissions::EXECUTE);
    mapped_files(process, executable)
}

/// Returns the shared memory that these processes have mapped, by path.
pub fn shared_memory(among: &[ProcessInfo]) -> BTreeSet<PathBuf> {
    let everything = among.iter().flat_map(|process| mapped_files(process.pid, |_| true));
    everything.filter(|path| path.starts_with("/dev/shm")).collect()
}

fn mapped_files(process: u32, wanted: impl Fn(&MemoryMap) -> bool) -> BTreeSet<PathBuf> {
    let Some(maps) = open(process).and_then(|process| process.maps().ok()) else { return BTreeSet::new() };
    let file = |map: &MemoryMap| match &map.pathname {
        MMapPath::Path(path) => Some(path.clone()),
        MMapPath::Heap
        | MMapPath::Stack
        | MMapPath::TStack(_)
        | MMapPath::Vdso
        | MMapPath::Vvar
        | MMapPath::Vsyscall
        | MMapPath::Rollup
        | MMapPath::Anonymous
        | MMapPath::Vsys(_)
        | MMapPath::Other(_) => None,
    };
    maps.iter().filter(|map| wanted(map)).filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen_with_its_listener() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let this = std::process::id();
        let found = listeners(this, port);
        assert_eq!(found.len(), 1);
        assert_eq!(socket_owner(found[0].inode, [this]), Some(this));
        assert!(processes().iter().any(|process| process.pid == this));
        assert!(!mapped_libraries(this).is_empty());
        assert_eq!(executable(this), std::env::current_exe().ok());
    }

    #[test]
    fn a_child_is_a_descendant_and_is_known_by_its_marker() {
        let marker = format!("test-{}", std::process::id());
        let mut child =
            std::process::Command::new("sleep").arg("60").env(RUN_MARKER, &marker).spawn().expect("sleep exists");
        assert!(descendants(std::process::id()).iter().any(|process| process.pid == child.id()));
        // The variables are the child's own only after it has become the program.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while marked(&marker).is_empty() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        let found = marked(&marker);
        assert_eq!(found.len(), 1);
        assert!(kill(&found[0]));
        child.wait().unwrap();
        assert!(!kill(&found[0]), "a process that is gone is never hit");
    }
}
