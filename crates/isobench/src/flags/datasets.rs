//! Where another client's prompts come from, and how long or large they are.

use isobench_plan::command::GivenOption;
use isobench_plan::knowledge::load_flags::LoadFlag;
use isobench_schema::tool::Tool;

use super::Fate;
use super::meaning::Draft;

/// Datasets that are read from a file, by the names that other clients give them.
const FILES: [&str; 5] = ["sharegpt", "custom", "burstgpt", "mooncake", "timed-trace"];

/// Ours, whose prompts are drawn: they read no file.
const DRAWN: [&str; 4] = ["random", "prefix-repetition", "shared-prefix", "image"];

/// The dataset where none is named.
const UNNAMED: &str = "random";

/// Sizes of images in pixels, from left to right and from top to bottom, by the names that SGLang's client has for them.
const SIZES: [(&str, (u32, u32)); 4] =
    [("4k", (3840, 2160)), ("1080p", (1920, 1080)), ("720p", (1280, 720)), ("360p", (640, 360))];

/// Groups of prompts where SGLang's client is told nothing else.
const GROUPS: u64 = 64;

/// Returns whether a flag counts for each dataset that is read from a file.
pub(super) fn is_of_each_file(flag: &LoadFlag) -> bool {
    FILES.iter().all(|file| flag.of_datasets.iter().any(|of| of == file))
}

impl<'k> Draft<'k> {
    /// Returns the dataset that is asked for, by a name of ours or of other clients; none where only its file is known.
    pub(super) fn asked_dataset(&self) -> Option<String> {
        let own = self.own_value("--dataset").map(|own| Some(own).filter(|own| !own.contains(['/', '.'])));
        let old = self.value("--dataset").map(|old| Some(old).filter(|old| self.dataset_named(old).is_some()));
        let named = self.value("--dataset-name").map(Some);
        let unnamed = if self.has("--dataset-path") { None } else { Some(UNNAMED) };
        let named = own.or(old.filter(|old| old.is_some() || named.is_none())).or(named).unwrap_or(unnamed);
        named.map(|name| name.replace('_', "-"))
    }

    /// Returns whether a flag counts for other datasets than the one that is asked for.
    pub(super) fn is_of_another_dataset(&self, flag: &LoadFlag) -> bool {
        let of = &flag.of_datasets;
        if of.is_empty() {
            return false;
        }
        match self.asked_dataset() {
            Some(asked) => !of.iter().any(|of| *of == asked || self.flags.datasets.get(of) == Some(&asked)),
            None => !of.iter().any(|of| FILES.contains(&of.as_str())),
        }
    }

    /// Returns whether a part's flags count for the dataset that is asked for.
    fn counts(&self, name: &str) -> bool {
        !self.flags.get(name).is_some_and(|flag| self.is_of_another_dataset(flag))
    }

    /// Returns a dataset by its name elsewhere or here.
    fn dataset_named(&self, name: &str) -> Option<&'k str> {
        self.flags.datasets.get(&name.replace('_', "-")).map(String::as_str)
    }

    /// Takes in where prompts come from.
    pub(super) fn dataset(&mut self) {
        let (name, path, old) =
            (self.option("--dataset-name"), self.option("--dataset-path"), self.option("--dataset"));
        // The oldest clients named a file by `--dataset`, SGLang's oldest a dataset.
        let old_value = old.as_ref().map(|old| old.values.concat());
        let old_is_name = old_value.as_ref().is_some_and(|old| self.dataset_named(old).is_some());
        let path_value = path.as_ref().map(|path| path.values.concat());
        let path_value = path_value.or(old_value.filter(|_| !old_is_name)).filter(|path| !path.is_empty());
        let name = if old_is_name { old.clone() } else { name };
        let name = name.filter(|name| !name.written.is_empty() || path_value.is_none() || self.tool.is_some());
        let file = path.or(old.filter(|_| !old_is_name)).zip(path_value);
        let Some(name) = name else {
            if let Some((option, file)) = file {
                self.say(&option, "--dataset", Some(file), None);
            }
            return;
        };
        let Some(ours) = self.dataset_named(&name.values.concat()) else {
            let known = self.flags.datasets.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            self.refuse(&name, &format!("this dataset isn't read here; known are {known}"));
            return;
        };
        let is_first = !self.is_said("--dataset");
        let needs_file = is_first && !DRAWN.contains(&ours) && ours != "sonnet";
        if needs_file && file.is_none() && !self.is_set("--dataset-option", "dataset-path=") {
            self.refuse(&name, "nothing is fetched: give its file with `--dataset-path FILE`");
            return;
        }
        self.say(&name, "--dataset", Some(ours.to_owned()), None);
        match file {
            Some((option, _)) if is_first && DRAWN.contains(&ours) => {
                self.note(&option, Fate::Ignored, Some("prompts are drawn, and no file is read".to_owned()));
            }
            Some((option, file)) => {
                self.say(&option, "--dataset-option", Some(format!("dataset-path={file}")), None);
            }
            None => {}
        }
    }

    /// Lengths of random prompts. A ratio has two meanings: lengths between L (1 - r) and L (1 + r) in vLLM's client since
    /// April 2025, which is ours by default, and between r L and L in SGLang's.
    pub(super) fn random_lengths(&mut self) {
        const NAMES: [&str; 3] = ["--random-input-len", "--random-output-len", "--random-range-ratio"];
        if !self.counts(NAMES[0]) {
            self.needless(&NAMES, "it counts for random prompts only, as in that client");
            return;
        }
        let ratio = self.option("--random-range-ratio");
        let given = ratio.as_ref().and_then(|ratio| ratio.values.concat().parse::<f64>().ok());
        let is_sglang = self.tool == Some(Tool::SglangBenchServing);
        let exact = if is_sglang { 1.0 } else { 0.0 };
        let is_exact = given.is_some_and(|given| (given - exact).abs() < f64::EPSILON);
        for (name, own) in [(NAMES[0], "--input-len"), (NAMES[1], "--output-len")] {
            let Some(option) = self.option(name) else { continue };
            let Ok(length) = option.values.concat().parse::<f64>() else {
                self.refuse(&option, "give a whole number of tokens");
                continue;
            };
            let note = (is_sglang && !is_exact && given.is_some())
                .then(|| "the longest of the lengths that client draws from".to_owned());
            self.say(&option, own, Some(format!("{:.0}", length.max(1.0))), note);
        }
        if let Some(option) = ratio {
            // One ratio for prompts and one for answers are a JSON object, in our form too.
            let text = given.map_or_else(|| option.values.concat(), |given| given.to_string());
            let has_range = self.range_ratio(&option, &text, (given, is_exact));
            if has_range && is_sglang {
                let note = "lengths lie between L r and L".to_owned();
                self.say(&option, "--dataset-option", Some("range-meaning=up-to".to_owned()), Some(note));
            }
        }
    }

    /// Takes the ratio; returns whether lengths differ by it.
    fn range_ratio(&mut self, option: &GivenOption<'k>, text: &str, (ratio, is_exact): (Option<f64>, bool)) -> bool {
        let has_one_length = self.asked_dataset().is_some_and(|dataset| !dataset.starts_with("random"));
        match ratio {
            Some(_) if is_exact => {
                self.note(option, Fate::Becomes(Vec::new()), Some("every length is exact, as by default".to_owned()));
            }
            _ if has_one_length && option.written.is_empty() => {
                let note = "the text beside images has one length".to_owned();
                self.note(option, Fate::Becomes(Vec::new()), Some(note));
            }
            _ if has_one_length => self.refuse(option, "the text beside images has one length"),
            Some(ratio) if !(0.0..=1.0).contains(&ratio) => self.refuse(option, "give a ratio from 0 to 1"),
            _ => {
                let is_sglang = self.tool == Some(Tool::SglangBenchServing);
                let note = (!is_sglang).then(|| "lengths lie between L (1 - r) and L (1 + r)".to_owned());
                self.say(option, "--dataset-option", Some(format!("random-range-ratio={text}")), note);
                return true;
            }
        }
        false
    }

    /// How large images are.
    pub(super) fn image_size(&mut self) {
        const NAMES: [&str; 2] = ["--image-resolution", "--random-image-resolution"];
        if !self.counts(NAMES[0]) {
            self.needless(&NAMES, "it counts for images only, as in that client");
            return;
        }
        for name in NAMES {
            let Some(option) = self.option(name) else { continue };
            let text = option.values.concat().to_lowercase();
            let named = SIZES.iter().find(|(known, _)| *known == text).map(|(_, size)| *size);
            // In that client the height comes first.
            let sides = text.split_once('x').map(|(height, width)| (width.parse().ok(), height.parse().ok()));
            let Some((width, height)) = named.or_else(|| sides.and_then(|(width, height)| width.zip(height))) else {
                self.refuse(&option, "give `4k`, `1080p`, `720p`, `360p`, or height and width as in `512x768`");
                continue;
            };
            self.say(&option, "--dataset-option", Some(format!("image-width={width}")), None);
            self.say(&option, "--dataset-option", Some(format!("image-height={height}")), None);
        }
    }

    /// How many requests share prefixes: in SGLang's client the groups and their prompts say it.
    pub(super) fn shared_prefix(&mut self) {
        const EACH: [&str; 2] = ["--gsp-prompts-per-group", "--gen-prompts-per-group"];
        const GROUP: [&str; 2] = ["--gsp-num-groups", "--gen-num-groups"];
        if !self.counts(EACH[0]) {
            self.needless(&EACH, "it counts for the dataset `generated-shared-prefix` only, as in that client");
            return;
        }
        let typed = |draft: &Self, name: &&str| draft.option(name).is_some_and(|option| !option.written.is_empty());
        let is_told = EACH.iter().chain(&GROUP).any(|name| typed(self, name));
        if typed(self, &"--num-prompts") && !is_told {
            return;
        }
        // An old name that nobody typed stands for nothing.
        let last = |names: [&'static str; 2]| names.into_iter().find(|name| typed(self, name)).unwrap_or(names[0]);
        let (each, group) = (last(EACH), last(GROUP));
        let Some(option) = self.option(each) else { return };
        let number = |name: &str| self.value(name).and_then(|text| text.parse::<u64>().ok());
        let requests = number(each).and_then(|each| each.checked_mul(number(group).unwrap_or(GROUPS)));
        match requests {
            Some(requests) => {
                let note = "so many for each group".to_owned();
                self.say(&option, "--requests", Some(requests.to_string()), Some(note));
            }
            None => self.refuse(&option, "give a whole number of prompts"),
        }
    }
}
