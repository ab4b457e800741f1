//! The nearest known name for an unknown one.

/// How far a suggestion may be, as a share of the longer name: beyond it a suggestion misleads.
const FARTHEST: f64 = 0.5;

/// Names longer than this are not compared: no key or arm is that long, and the cost is the product of the lengths.
const LONGEST: usize = 200;

/// Returns the candidate that is nearest to `name`, or `None` if none is near. Of equally near ones the first.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if name.len() > LONGEST {
        return None;
    }
    let name = name.replace('_', "-");
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let likeness = likeness(&name, candidate);
        if likeness >= 1.0 - FARTHEST && best.is_none_or(|(found, _)| likeness > found) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns the flag that is nearest to `name`, or `None` if more than a third of its letters, or more than one, would have to
/// change: flags of several programs are so many that some are alike by chance.
pub fn nearest_flag<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let near = nearest(name, candidates)?;
    let bare = |flag: &str| flag.trim_start_matches('-').replace('_', "-");
    let (typed, found) = (bare(name), bare(near));
    (strsim::damerau_levenshtein(&typed, &found) <= (typed.len() / 3).max(1)).then_some(near)
}

/// Returns how alike two key paths are, at most 1: by their last parts, less something for standing in another table.
fn likeness(name: &str, candidate: &str) -> f64 {
    /// What another table costs, and how much more one that isn't alike.
    const ELSEWHERE: (f64, f64) = (0.1, 0.2);
    let parts = |path| str::rsplit_once(path, '.').unwrap_or(("", path));
    let ((table, last), (known_table, known_last)) = (parts(name), parts(candidate));
    let alike = strsim::normalized_damerau_levenshtein(last, known_last);
    if table == known_table {
        return alike;
    }
    alike - ELSEWHERE.0 - ELSEWHERE.1 * (1.0 - strsim::normalized_damerau_levenshtein(table, known_table))
}

/// Returns `; did you mean `x`?`, or nothing.
pub(crate) fn hint<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    nearest(name, candidates).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_suggested_only_if_it_is_near() {
        let flags = ["--num-prompts", "--csv", "--rate", "--ramp"];
        for (name, expected) in [
            ("--num_prompt", Some("--num-prompts")),
            ("--csw", Some("--csv")),
            ("--date", Some("--rate")),
            ("--numbers", None),
            ("--cool", None),
        ] {
            assert_eq!(nearest_flag(name, flags), expected, "{name}");
        }
    }

    #[test]
    fn the_nearest_name_is_named_and_a_far_one_is_not() {
        let keys = ["id", "server.options", "server.model", "workload.requests"];
        for (name, expected) in [
            ("server.optoins", Some("server.options")),
            ("model", Some("server.model")),
            ("workload.request", Some("workload.requests")),
            ("zzzzzzzz", None),
            (&"x".repeat(5000), None),
        ] {
            assert_eq!(nearest(name, keys), expected, "{name}");
        }
    }
}
