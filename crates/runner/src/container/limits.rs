//! What the kernel says of a container: its bounds, its rights and its network, read from outside by a process of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use isobench_schema::check::Check;
use isobench_schema::container::{ContainerFacts, ContainerLimits};
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

use super::options::Network;

/// The kernel's bound of memory in units of this.
const PAGE: u64 = 4096;
/// Values from here on are no bound: the kernel's largest number, rounded down to pages.
const UNBOUNDED: u64 = 1 << 62;

/// Adds to `facts` what the kernel says of a process of the container.
pub(super) fn look(process: u32, facts: ContainerFacts) -> ContainerFacts {
    let groups = Groups::of(process);
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let limits = ContainerLimits {
        memory_bytes: groups.number("memory.max", "memory/memory.limit_in_bytes"),
        processors: field(&status, "Cpus_allowed_list").map(str::to_owned),
        processes: groups.number("pids.max", "pids/pids.max"),
        shared_memory_bytes: rustix::fs::statvfs(format!("/proc/{process}/root/dev/shm"))
            .ok()
            .map(|stat| stat.f_blocks.saturating_mul(stat.f_frsize)),
    };
    ContainerFacts {
        limits,
        peak_memory_bytes: groups.peak(),
        capabilities: field(&status, "CapBnd").unwrap_or_default().to_owned(),
        no_new_privileges: field(&status, "NoNewPrivs") == Some("1"),
        seccomp: field(&status, "Seccomp") == Some("2"),
        interfaces: interfaces(process),
        ..facts
    }
}

/// The control groups as a process in the container sees them: those of the container alone.
#[derive(Debug, Clone)]
pub(super) struct Groups(PathBuf);

impl Groups {
    pub(super) fn of(process: u32) -> Self {
        Self(PathBuf::from(format!("/proc/{process}/root/sys/fs/cgroup")))
    }

    /// Returns a number by its name in version 2, or else in version 1; `None` if there is no bound or nobody can tell.
    fn number(&self, second: &str, first: &str) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(self.0.join(Path::new(name))).ok();
        let text = read(second).or_else(|| read(first))?;
        text.trim().parse().ok().filter(|number| *number < UNBOUNDED)
    }

    /// Returns the most memory that the container has used so far, in bytes.
    pub(super) fn peak(&self) -> Option<u64> {
        self.number("memory.peak", "memory/memory.max_usage_in_bytes")
    }
}

/// Returns the processors that this program may run on, as the kernel lists them.
pub(super) fn own_processors() -> Option<String> {
    field(&fs::read_to_string("/proc/self/status").ok()?, "Cpus_allowed_list").map(str::to_owned)
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Returns the names of the interfaces in the network of a process, sorted.
fn interfaces(process: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{process}/net/dev")).unwrap_or_default();
    // The first two lines are headings.
    let names = text.lines().skip(2).filter_map(|line| line.split_once(':'));
    let mut names: Vec<String> = names.map(|(name, _)| name.trim().to_owned()).collect();
    names.sort();
    names
}

/// Checks that a container has the bounds that were asked for, no rights, and no other network.
///
/// # Errors
/// Returns `environment-unproven` with what was found and what was asked for.
pub(super) fn check(asked: &ContainerLimits, network: &Network, facts: &ContainerFacts) -> Result<(), Failure> {
    let found = &facts.limits;
    let pages = |bytes: &u64| bytes - bytes % PAGE;
    let mut wrong = Vec::new();
    let mut hold = |what: &str, planned: Option<String>, found: Option<String>| {
        if let Some(planned) = planned.filter(|planned| found.as_ref() != Some(planned)) {
            wrong.push((what.to_owned(), planned, found.unwrap_or_else(|| "nothing".to_owned())));
        }
    };
    let number = |number: u64| number.to_string();
    let memory = [&asked.memory_bytes, &found.memory_bytes].map(|bytes| bytes.as_ref().map(pages).map(number));
    let [planned, seen] = memory;
    hold("bound of memory in bytes", planned, seen);
    hold("bound of processes", asked.processes.map(number), found.processes.map(number));
    hold("size of /dev/shm in bytes", asked.shared_memory_bytes.map(number), found.shared_memory_bytes.map(number));
    let list = |text: &Option<String>| text.as_deref().map(|text| format!("{:?}", processors(text)));
    hold("list of processors", list(&asked.processors), list(&found.processors));
    hold("mask of capabilities", Some("0".to_owned()), Some(mask(&facts.capabilities)));
    hold("bar to new privileges", Some("true".to_owned()), Some(facts.no_new_privileges.to_string()));
    hold("filter of system calls", Some("true".to_owned()), Some(facts.seccomp.to_string()));
    // Tunnels that every network namespace of some kernels has lead nowhere unless somebody may configure them.
    let own = |name: &&String| {
        !matches!(
            name.as_str(),
            "tunl0" | "sit0" | "ip6tnl0" | "gre0" | "gretap0" | "erspan0" | "ip_vti0" | "ip6_vti0" | "ip6gre0"
        )
    };
    let seen: Vec<&String> = facts.interfaces.iter().filter(own).collect();
    if *network == Network::None {
        hold("list of network interfaces", Some(r#"["lo"]"#.to_owned()), Some(format!("{seen:?}")));
    }
    let Some((what, planned, seen)) = wrong.first() else { return Ok(()) };
    let message = format!("the container's {what} is `{seen}`, asked for was `{planned}`");
    let line = |(what, planned, seen): &(String, String, String)| {
        EvidenceLine::new("container", None, &format!("{what}: {seen}, asked for: {planned}"))
    };
    let failure = Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message);
    Err(failure.breaking(Check::LiveProof).with_evidence(wrong.iter().map(line)))
}

/// Returns a mask without leading zeros, of which one stays if there is nothing else.
fn mask(text: &str) -> String {
    let rest = text.trim_start_matches('0');
    if rest.is_empty() && !text.is_empty() { "0".to_owned() } else { rest.to_owned() }
}

/// Returns the processors of a list such as `0-3,8`. What can't be read is none.
fn processors(text: &str) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> ContainerFacts {
        ContainerFacts {
            limits: ContainerLimits {
                memory_bytes: Some(64 << 20),
                processors: Some("0-1".to_owned()),
                processes: Some(100),
                shared_memory_bytes: Some(64 << 20),
            },
            capabilities: "0000000000000000".to_owned(),
            no_new_privileges: true,
            seccomp: true,
            interfaces: vec!["lo".to_owned()],
            ..ContainerFacts::default()
        }
    }

    #[test]
    fn a_container_has_what_was_asked_for_and_no_more() {
        let asked = ContainerLimits {
            memory_bytes: Some((64 << 20) + 5),
            processors: Some("0,1".to_owned()),
            ..facts().limits
        };
        assert_eq!(check(&asked, &Network::None, &facts()), Ok(()));
        let wrong = |change: fn(&mut ContainerFacts), part: &str| {
            let mut facts = facts();
            change(&mut facts);
            let failure = check(&asked, &Network::None, &facts).unwrap_err();
            assert_eq!(failure.class, FailureClass::EnvironmentUnproven);
            assert!(failure.message.contains(part), "{failure}");
        };
        wrong(|facts| facts.limits.memory_bytes = None, "bound of memory in bytes is `nothing`");
        wrong(|facts| facts.limits.processors = Some("0-3".to_owned()), "list of processors is `{0, 1, 2, 3}`");
        wrong(|facts| facts.capabilities = "00000000a80425fb".to_owned(), "capabilities is `a80425fb`");
        wrong(|facts| facts.no_new_privileges = false, "privileges");
        wrong(|facts| facts.seccomp = false, "filter of system calls");
        wrong(|facts| facts.interfaces.push("eth0".to_owned()), r#"["lo", "eth0"]"#);
        let mut open = facts();
        open.interfaces.push("eth0".to_owned());
        assert_eq!(check(&asked, &Network::Default, &open), Ok(()));
    }

    #[test]
    fn this_process_is_looked_at_as_the_kernel_shows_it() {
        let found = look(std::process::id(), ContainerFacts::default());
        assert!(found.interfaces.contains(&"lo".to_owned()), "{found:?}");
        assert!(!processors(&found.limits.processors.unwrap()).is_empty());
        assert_eq!(found.capabilities.len(), 16);
    }
}
