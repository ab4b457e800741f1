//! The table `knowledge/toolkits.toml`: images with a compiler of CUDA, by its version and by that of PyTorch.

use serde::Deserialize;

use super::table;

/// An image that holds the compiler of a version of CUDA.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ToolkitRow {
    /// The version: `12.8`.
    pub cuda: String,
    /// The image.
    pub image: String,
    /// The versions of `PyTorch`, by their first two numbers, that engines were built against with it.
    pub torch: Vec<String>,
    /// Where the row comes from.
    pub source: String,
}

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Toolkits {
    /// The images, by rising versions.
    pub toolkit: Vec<ToolkitRow>,
}

impl Toolkits {
    pub(super) fn embedded() -> Self {
        table("toolkits.toml", include_str!("../../../../knowledge/toolkits.toml"))
    }

    /// Returns the image of a version of CUDA such as `12.8`.
    pub fn of_cuda(&self, cuda: &str) -> Option<&ToolkitRow> {
        self.toolkit.iter().find(|row| row.cuda == cuda)
    }

    /// Returns the image for what a revision asks for, by the version of `PyTorch` that is among it: `torch==2.7.0`.
    pub fn of_requirements<'r>(&self, asks: impl IntoIterator<Item = &'r str>) -> Option<&ToolkitRow> {
        let torch = asks.into_iter().find_map(torch)?;
        self.toolkit.iter().find(|row| row.torch.contains(&torch))
    }
}

/// Returns the first two numbers of the version in a requirement of `torch`, if it is one and pins it.
fn torch(requirement: &str) -> Option<String> {
    let version = requirement.trim().strip_prefix("torch")?.trim_start().strip_prefix("==")?.trim_start();
    let numbers: Vec<&str> = version.split('.').take(2).collect();
    let is_plain = |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (numbers.len() == 2 && numbers.iter().all(is_plain)).then(|| numbers.join("."))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use isobench_schema::environment::EngineKind;

    use super::*;
    use crate::knowledge::Knowledge;
    use crate::knowledge::packages::Group;

    #[test]
    fn each_version_is_in_one_row_and_each_row_says_where_it_is_from() {
        let rows = &Knowledge::embedded().toolkits.toolkit;
        let versions: Vec<&str> = rows.iter().map(|row| row.cuda.as_str()).collect();
        assert_eq!(versions.iter().collect::<BTreeSet<_>>().len(), versions.len());
        let torch: Vec<&String> = rows.iter().flat_map(|row| &row.torch).collect();
        assert_eq!(torch.iter().collect::<BTreeSet<_>>().len(), torch.len());
        for row in rows {
            assert!(row.image.starts_with(&format!("nvidia/cuda:{}.", row.cuda)), "{row:?}");
            assert!(row.image.contains("-devel-") && !row.source.is_empty(), "{row:?}");
        }
    }

    #[test]
    fn every_pytorch_that_a_known_commit_pins_has_an_image() {
        let knowledge = Knowledge::embedded();
        let packages = knowledge.engines.packages(EngineKind::Vllm).unwrap();
        let mut seen = BTreeSet::new();
        for facts in knowledge.commits.of(EngineKind::Vllm) {
            let groups = [Group::Cuda, Group::Common, Group::Build];
            let asks: Vec<&str> = packages.asks_at(&groups, &facts.committed).collect();
            let Some(torch) = asks.iter().find_map(|ask| torch(ask)) else { continue };
            let row = knowledge.toolkits.of_requirements(asks.iter().copied());
            assert!(row.is_some(), "torch {torch} of {}", facts.commit);
            seen.insert((torch, row.unwrap().cuda.clone()));
        }
        let has = |torch: &str, cuda: &str| seen.contains(&(torch.to_owned(), cuda.to_owned()));
        assert!(has("2.1", "12.1") && has("2.5", "12.4") && has("2.7", "12.8"), "{seen:?}");
    }

    #[test]
    fn only_a_pin_of_pytorch_itself_counts() {
        for (requirement, expected) in [
            ("torch==2.7.0", Some("2.7")),
            ("torch == 2.10.0+cu128; platform_machine != 'aarch64'", Some("2.10")),
            ("torch>=2.0.0", None),
            ("torchvision==0.22.0", None),
            ("torch==2", None),
        ] {
            assert_eq!(torch(requirement).as_deref(), expected, "{requirement}");
        }
    }
}
