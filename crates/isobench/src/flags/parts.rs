//! Flags of other clients that say one thing together.

use isobench_plan::command::GivenOption;
use isobench_plan::knowledge::clients::{IgnoreEos, Sampling};
use isobench_plan::knowledge::load_flags::Part;
use isobench_schema::ids::Moment;
use isobench_schema::tool::Tool;

use super::Fate;
use super::meaning::Draft;

/// The port of SGLang's server where its client names none.
const SGLANG_PORT: &str = "30000";

/// Paths of requests that an interface has.
const PATHS: [(&str, &str); 3] =
    [("/completions", "completions"), ("/chat/completions", "chat"), ("/embeddings", "embeddings")];

impl Draft<'_> {
    /// Takes in one part.
    pub(super) fn part(&mut self, part: Part) {
        match part {
            Part::Url => self.url(),
            Part::Endpoint => self.endpoint(),
            Part::Model => self.model(),
            Part::LoraShares => self.lora_shares(),
            Part::Dataset => self.dataset(),
            Part::RandomLengths => self.random_lengths(),
            Part::ImageSize => self.image_size(),
            Part::SharedPrefix => self.shared_prefix(),
            Part::EndOfSequence => self.end_of_sequence(),
            Part::Arrival => self.arrival(),
            Part::ResultFile => self.result_file(),
            Part::Goodput => self.goodput(),
        }
    }

    /// Notes that flags together became words of ours.
    pub(super) fn together(&mut self, names: &[&str], words: &[&str], note: Option<&str>) {
        self.add(words);
        self.noted(names, words, note);
    }

    fn noted(&mut self, names: &[&str], words: &[&str], note: Option<&str>) {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let options: Vec<GivenOption<'_>> = names.iter().filter_map(|name| self.option(name)).collect();
        for option in options {
            self.note(&option, Fate::Becomes(words.clone()), note.map(ToOwned::to_owned));
        }
    }

    /// Notes that flags say nothing beside what is said already.
    pub(super) fn needless(&mut self, names: &[&str], why: &str) {
        let options: Vec<GivenOption<'_>> = names.iter().filter_map(|name| self.option(name)).collect();
        for option in options {
            self.note(&option, Fate::Ignored, Some(why.to_owned()));
        }
    }

    fn url(&mut self) {
        const NAMES: [&str; 4] = ["--base-url", "--host", "--port", "--protocol"];
        if self.has_url() {
            self.needless(&NAMES, "a URL is given");
            return;
        }
        if let Some(url) = self.value("--base-url").map(ToOwned::to_owned) {
            self.together(&["--base-url"], &[url.trim_end_matches('/')], None);
            self.needless(&["--host", "--port", "--protocol"], "`--base-url` is given");
            return;
        }
        let default_port = if self.tool == Some(Tool::SglangBenchServing) { SGLANG_PORT } else { "8000" };
        let port = self.value("--port").unwrap_or(default_port);
        // Every address of a machine isn't one that can be connected to.
        let host = self.value("--host").filter(|host| *host != "0.0.0.0").unwrap_or("127.0.0.1");
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let url = format!("{}://{host}:{port}", self.value("--protocol").unwrap_or("http"));
        self.together(&NAMES, &[&url], None);
    }

    fn endpoint(&mut self) {
        let Some(option) = self.option("--endpoint") else { return };
        let Some(path) = option.values.first().cloned() else { return };
        let api = PATHS.iter().rev().find(|(end, _)| path.ends_with(end)).map(|(_, api)| *api);
        // An unwritten path is what the backend says anyway.
        match api {
            Some(_) if option.written.is_empty() => {}
            Some(api) => self.say(&option, "--api", Some(api.to_owned()), None),
            None => {}
        }
        if !PATHS.iter().any(|(end, _)| path == format!("/v1{end}")) {
            self.say(&option, "--endpoint", Some(path), None);
        }
    }

    fn model(&mut self) {
        let named = self.option("--served-model-name");
        let Some(model) = self.option("--model") else {
            if let Some(named) = named {
                let name = named.values.concat();
                self.say(&named, "--model", Some(name), None);
            }
            return;
        };
        let value = model.values.concat();
        if let Some(named) = named {
            let name = named.values.concat();
            self.say(&named, "--model", Some(name), None);
        } else {
            self.say(&model, "--model", Some(value.clone()), None);
        }
        if self.has("--tokenizer") || self.has("--skip-tokenizer-init") {
            if self.has("--served-model-name") {
                self.needless(
                    &["--model"],
                    "the server knows the model by `--served-model-name`, and a tokenizer is given",
                );
            }
        } else if value.starts_with(['/', '.', '~']) {
            self.say(&model, "--tokenizer", Some(value), None);
        } else if self.has("--served-model-name") {
            self.needless(&["--model"], "there it names the tokenizer: give `--tokenizer DIR` for exact lengths");
        }
    }

    fn lora_shares(&mut self) {
        let Some(option) = self.option("--lora-request-distribution") else { return };
        match option.values.first().map(String::as_str) {
            Some("uniform") | None => {
                self.note(
                    &option,
                    Fate::Ignored,
                    Some("adapters take turns, so that each has the same share".to_owned()),
                );
            }
            // Without adapters there is nothing to share.
            Some(_) if !self.has("--lora-name") => {
                self.needless(&["--lora-request-distribution"], "no adapter is named");
            }
            Some(_) => self.refuse(&option, "adapters have equal shares here"),
        }
    }

    /// Returns what the client whose command it is sends by itself.
    fn sampling(&self) -> Option<&Sampling> {
        let newest = Moment::new("9999-12-31T00:00:00Z").ok()?;
        self.knowledge.clients.sampling(self.tool?, &newest)
    }

    fn end_of_sequence(&mut self) {
        if let Some(option) = self.option("--ignore-eos") {
            self.note(&option, Fate::Becomes(Vec::new()), Some("the default".to_owned()));
            return;
        }
        let is_random = self.asked_dataset().is_some_and(|name| name.starts_with("random"));
        let stops = match self.sampling().map(|sampling| sampling.ignore_eos) {
            Some(IgnoreEos::Never | IgnoreEos::IfAsked) => true,
            Some(IgnoreEos::RandomOrAsked) => !is_random,
            // `--disable-ignore-eos` says it by itself.
            Some(IgnoreEos::Always | IgnoreEos::UnlessRefused) | None => false,
        };
        if stops {
            self.unasked("no `--ignore-eos`", &["--stop-at-eos"], "that client lets answers end by themselves");
        }
    }

    /// What a client whose whole command it is samples with unasked.
    pub(super) fn temperature(&mut self) {
        if self.tool.is_none() || self.is_said("--temperature") {
            return;
        }
        match self.sampling().and_then(|sampling| sampling.temperature) {
            Some(sent) => {
                self.unasked("no `--temperature`", &["--temperature", &sent.to_string()], "what that client sends");
            }
            None => self.unasked(
                "no `--temperature`",
                &["--temperature", "1"],
                "that client sends none, so that the model's own settings count; here one is always sent",
            ),
        }
    }

    fn unasked(&mut self, written: &str, words: &[&str], note: &str) {
        if words.first().is_some_and(|flag| self.is_said(flag)) {
            return;
        }
        self.add(words);
        let option = GivenOption { written: written.to_owned(), name: String::new(), values: Vec::new(), spec: None };
        let words = words.iter().map(ToString::to_string).collect();
        self.note(&option, Fate::Becomes(words), Some(note.to_owned()));
    }

    fn result_file(&mut self) {
        const VLLM: [&str; 3] = ["--save-result", "--result-dir", "--result-filename"];
        if self.is_said("--format") {
            self.needless(&[VLLM[0], VLLM[1], VLLM[2], "--output-file"], "`--format` is given");
            return;
        }
        if let Some(file) = self.value("--output-file").map(ToOwned::to_owned) {
            self.together(&["--output-file"], &["--format", "sglang", "--out", &file], None);
            return;
        }
        if !self.has("--save-result") {
            self.needless(&VLLM, "without `--save-result` that client writes no file");
            return;
        }
        let name = self.value("--result-filename").map_or_else(|| self.result_name(), ToOwned::to_owned);
        let file =
            self.value("--result-dir").map_or(name.clone(), |dir| format!("{}/{name}", dir.trim_end_matches('/')));
        self.together(&VLLM, &["--format", "vllm", "--out", &file], None);
    }

    /// Returns the name that vLLM's client gives its file: by what was asked, and when.
    fn result_name(&self) -> String {
        let given = |own: &str, name: &str| self.own_value(own).or_else(|| self.value(name));
        let rate = given("--rate", "--request-rate").map_or_else(|| "inf".to_owned(), python_number);
        let label = self.value("--label").or_else(|| self.value("--backend")).unwrap_or("openai");
        let bound = given("--concurrency", "--max-concurrency")
            .map_or_else(String::new, |bound| format!("-concurrency{bound}"));
        let model = given("--model", "--model").and_then(|model| model.rsplit('/').next()).unwrap_or("model");
        let rates = match self.value("--ramp-up-strategy") {
            Some(strategy) => {
                let (from, to) = (self.value("--ramp-up-start-rps"), self.value("--ramp-up-end-rps"));
                format!("ramp-up-{strategy}-{}qps-{}qps", from.unwrap_or_default(), to.unwrap_or_default())
            }
            None => format!("{rate}qps"),
        };
        let date = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
        format!("{label}-{rates}{bound}-{model}-{date}.json")
    }

    fn goodput(&mut self) {
        let Some(option) = self.option("--goodput") else { return };
        let is_limit = |text: &String| {
            let limit = text.split_once(':').filter(|(name, _)| matches!(*name, "ttft" | "tpot" | "e2el"));
            limit.is_some_and(|(_, limit)| limit.parse::<f64>().is_ok_and(|limit| limit >= 0.0))
        };
        if option.values.iter().all(is_limit) {
            // Our objectives have this form too.
            self.say(&option, "--goodput", Some(option.values.join(" ")), None);
        } else {
            self.refuse(&option, "give limits in milliseconds of ttft, tpot or e2el, such as `ttft:500 tpot:50`");
        }
    }
}

/// Returns a number as Python shows it: whole ones with a place after the point.
fn python_number(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => format!("{number:?}"),
        Ok(_) | Err(_) => text.to_owned(),
    }
}
