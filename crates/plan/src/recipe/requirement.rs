//! Requirements on one package: bounds of its version, as far as they are told by numbers.

/// A requirement, as pip writes it, with the span of versions that it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    /// The package's normalised name.
    pub(super) package: String,
    /// The lowest version.
    low: Option<Bound>,
    /// The highest version.
    high: Option<Bound>,
}

/// The end of a span of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bound {
    version: Vec<u64>,
    /// Whether the version itself is allowed.
    included: bool,
}

impl Requirement {
    /// Reads a requirement; none if it isn't a name with bounds that are told by numbers, or holds only on some platforms.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.contains([';', '@']) {
            return None;
        }
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(text.len());
        let (name, rest) = text.split_at_checked(end)?;
        let package = name.trim().to_lowercase().replace(['_', '.'], "-");
        let rest = rest.trim();
        // Extras don't bound the version.
        let rest = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(rest, |(_, rest)| rest);
        let mut requirement = Self { package, low: None, high: None };
        for part in rest.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            requirement.narrow(part)?;
        }
        (!requirement.package.is_empty()).then_some(requirement)
    }

    /// Takes in one bound, such as `<2`.
    fn narrow(&mut self, part: &str) -> Option<()> {
        let (operator, version) = part.split_at_checked(part.find(|c: char| c.is_ascii_digit())?)?;
        let bound = |included| Some(Bound { version: parts(version)?, included });
        match operator.trim() {
            "==" => {
                self.raise(bound(true)?);
                self.lower(bound(true)?);
            }
            ">=" => self.raise(bound(true)?),
            ">" => self.raise(bound(false)?),
            "<=" => self.lower(bound(true)?),
            "<" => self.lower(bound(false)?),
            // A version left out doesn't move the ends.
            "!=" => {}
            _ => return None,
        }
        Some(())
    }

    fn raise(&mut self, bound: Bound) {
        let tighter =
            self.low.as_ref().is_none_or(|low| (&bound.version, !bound.included) > (&low.version, !low.included));
        if tighter {
            self.low = Some(bound);
        }
    }

    fn lower(&mut self, bound: Bound) {
        let tighter =
            self.high.as_ref().is_none_or(|high| (&bound.version, bound.included) < (&high.version, high.included));
        if tighter {
            self.high = Some(bound);
        }
    }

    /// Returns whether every version that it leaves is one that another requirement on the same package leaves too.
    pub(super) fn implies(&self, other: &Self) -> bool {
        let high = other.high.as_ref().is_none_or(|outer| {
            self.high.as_ref().is_some_and(|inner| (&inner.version, inner.included) <= (&outer.version, outer.included))
        });
        let low = other.low.as_ref().is_none_or(|outer| {
            self.low
                .as_ref()
                .is_some_and(|inner| (&inner.version, !inner.included) >= (&outer.version, !outer.included))
        });
        self.package == other.package && high && low
    }

    /// Returns whether no version fits this and another requirement.
    #[cfg(test)]
    pub(super) fn contradicts(&self, other: &Self) -> bool {
        let mut both = self.clone();
        other.low.iter().for_each(|low| both.raise(low.clone()));
        other.high.iter().for_each(|high| both.lower(high.clone()));
        let (Some(low), Some(high)) = (&both.low, &both.high) else { return false };
        let ends = low.included && high.included;
        self.package == other.package && (low.version > high.version || low.version == high.version && !ends)
    }
}

/// Returns the numbers of a version, trailing zeros left out; none if it is told by more than numbers.
fn parts(version: &str) -> Option<Vec<u64>> {
    let version = version.trim().trim_end_matches(".*");
    let mut numbers: Vec<u64> = version.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Requirement {
        Requirement::read(text).unwrap_or_else(|| panic!("`{text}` isn't read"))
    }

    #[test]
    fn a_tighter_requirement_implies_a_wider_one() {
        for (tight, wide, expected) in [
            ("numpy<=1.26.4", "numpy<2", true),
            ("numpy==1.26.4", "numpy<2", true),
            ("numpy<2", "numpy<2.0.0", true),
            ("numpy<=2", "numpy<2", false),
            ("numpy<2", "numpy<=2", true),
            ("numpy>=1.20", "numpy<2", false),
            ("numpy<=2.2.1", "numpy<2", false),
            ("Outlines_Core==0.0.34", "outlines-core==0.0.34", true),
            ("transformers<4.49", "transformers<5", true),
            ("transformers>=4.45,<4.49", "transformers<4.54", true),
            ("transformers[sentencepiece]<=4.47.1", "transformers<4.49", true),
            ("torch<2", "numpy<2", false),
        ] {
            assert_eq!(read(tight).implies(&read(wide)), expected, "{tight} implies {wide}");
        }
    }

    #[test]
    fn requirements_without_a_common_version_contradict_each_other() {
        for (a, b, expected) in [
            ("numpy<2", "numpy>=2", true),
            ("numpy<2", "numpy>=1.20", false),
            ("outlines==0.0.34", "outlines<0.1", false),
            ("outlines==0.0.34", "outlines>=0.0.43", true),
            ("numpy<2", "torch>=2", false),
        ] {
            assert_eq!(read(a).contradicts(&read(b)), expected, "{a} and {b}");
            assert_eq!(read(b).contradicts(&read(a)), expected, "{b} and {a}");
        }
    }

    #[test]
    fn what_is_not_told_by_numbers_is_not_read() {
        for text in ["vllm @ https://x/y.whl", "x; sys_platform == 'never'", "x==1.0rc1", "x~=1.2", "", "=="] {
            assert_eq!(Requirement::read(text), None, "{text}");
        }
    }
}
