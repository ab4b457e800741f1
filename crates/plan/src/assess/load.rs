//! What a task is loaded with, what its model needs, and what is wrong with both.

use std::collections::BTreeMap;

use isobench_schema::assessment::{Cost, DeviceNeed, Finding};
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::environment::EngineKind;
use isobench_schema::task::{Limits, MetricSpec, OptionValue};
use isobench_schema::workload::Workload;

use super::sources::Sources;
use super::{ProxyChoice, Subject, metric, script};
use crate::command::workload::{Derived, derive};
use crate::command::{Asked, Fitted, fit};
use crate::cost::{CostInput, cost};
use crate::knowledge::models::ModelRow;
use crate::lint::{Case, Given, Traits, finding, ids, lint};
use crate::planner::default_looks;
use crate::requirements::{
    DeadlineSettings, Launch, Model, Place, ServerOptions, ServiceRate, ceiling, deadlines, model, need, proxy,
    service_rate, start_s,
};
use crate::{defaults, deviations};

/// What a task is loaded with, and what it needs.
pub(super) struct Load<'a> {
    /// The command, made fit for the baseline.
    pub(super) fitted: Option<Fitted<'a>>,
    /// The model that is measured.
    pub(super) model: Option<String>,
    /// The workload.
    pub(super) workload: Option<Workload>,
    /// The server's options by their names without dashes.
    pub(super) options: BTreeMap<String, OptionValue>,
    /// Variables of the server.
    pub(super) variables: BTreeMap<String, String>,
    /// What decides.
    pub(super) metric: Option<MetricSpec>,
    /// What a launch needs.
    pub(super) need: Option<DeviceNeed>,
    /// Deadlines.
    pub(super) limits: Option<Limits>,
    /// What was changed.
    pub(super) repairs: Vec<Deviation>,
    given: Option<Given>,
    traits: Option<Traits>,
    row: Option<&'a ModelRow>,
    size: Option<Model>,
    rate: Option<ServiceRate>,
    /// Seconds of a start.
    start_s: Option<f64>,
    found: Vec<Finding>,
}

impl<'a> Load<'a> {
    pub(super) fn new(subject: &Subject<'a>) -> Self {
        let (fitted, mut found) = fitted(subject);
        let named = fitted.as_ref().and_then(Fitted::model).map(ToOwned::to_owned);
        let model = named.or_else(|| subject.task.model.clone());
        let row = model.as_deref().and_then(|name| subject.knowledge.models.find(name));
        let size = model.as_deref().and_then(|name| sized(subject, name));
        let vocabulary = size.as_ref().and_then(|size| u32::try_from(size.vocabulary).ok());
        let mut repairs = fitted.as_ref().map(|fitted| fitted.repairs.clone()).unwrap_or_default();
        let mut variables = fitted.as_ref().map(|fitted| fitted.variables.clone()).unwrap_or_default();
        let mut options = BTreeMap::new();
        let mut workload = None;
        if let Some(derived) = fitted.as_ref().map(|fitted| derive(fitted, &subject.knowledge.clients, vocabulary)) {
            let Derived { workload: of_command, server, variables: set, repairs: changed, findings, .. } = derived;
            let measures = fitted.as_ref().zip(of_command.as_ref()).zip(model.as_deref());
            let script = measures.and_then(|((fitted, workload), model)| script::of(subject, fitted, model, workload));
            options = server;
            variables.extend(set);
            if let (Some(script), Some(of_client)) = (script, &of_command) {
                // What the client and the server would do otherwise doesn't concern the script.
                repairs.retain(|repair| !script::is_of_server_alone(repair));
                repairs.push(deviations::self_reported(&script));
                workload = Some(script::measured_by(of_client.clone(), script));
            } else {
                workload = of_command;
                repairs.extend(changed);
                found.extend(findings);
            }
        } else if let (None, Some(preset)) = (&subject.task.command, &subject.options.preset) {
            workload = Some(preset.workload(subject.task.engine, vocabulary));
            repairs.push(preset.deviation());
        }
        let mut load = Self {
            given: fitted.as_ref().map(Given::of),
            traits: None,
            fitted,
            model,
            metric: workload.as_ref().map(metric::of),
            workload,
            options,
            variables,
            need: None,
            limits: None,
            repairs,
            row,
            size,
            rate: None,
            start_s: None,
            found,
        };
        load.find_unknown_model();
        load.reckon(subject);
        load.traits = load.traits(subject);
        load
    }

    /// Notes that nothing is known of a model that the command names.
    fn find_unknown_model(&mut self) {
        if let (Some(model), None, None) = (&self.model, &self.size, self.row) {
            let message = format!("nothing is known of the size of `{model}`, nor of what it needs");
            self.found.push(finding(ids::MODEL_UNKNOWN, "--model", message));
        }
    }

    /// Reckons devices and deadlines, and puts a smaller model in the place of one that doesn't fit where that is asked for.
    fn reckon(&mut self, subject: &Subject<'a>) {
        let (mut server, faults) = ServerOptions::read(&self.options);
        self.found.extend(faults.into_iter().map(|fault| finding(ids::VALUE_REFUSED, "server options", fault)));
        let (Some(place), Some(mut size)) = (subject.place(), self.size.clone()) else { return };
        let mut wanted = need(&size, &server, self.workload.as_ref(), &place);
        let count = subject.options.planned_for.count;
        let fits = wanted.devices.is_some_and(|devices| devices <= count);
        if !fits && subject.options.proxy == ProxyChoice::WhereTooLarge {
            let models = &subject.knowledge.models;
            if let Some(found) = proxy(models, &size, &server, self.workload.as_ref(), (&place, count)) {
                server.tensor_parallel = Some(found.tensor_parallel);
                server.pipeline_parallel = None;
                server.data_parallel = None;
                self.stand_in(subject.task.engine, &found.model.name, found.tensor_parallel);
                self.repairs.push(found.deviation);
                self.model = Some(found.model.name.clone());
                self.row = subject.knowledge.models.find(&found.model.name);
                size = found.model;
                wanted = need(&size, &server, self.workload.as_ref(), &place);
            }
        }
        self.spread(subject.task.engine, &mut server, &wanted);
        self.found.extend(context_faults(&size, &server, self.workload.as_ref()));
        self.need = Some(wanted);
        self.deadlines(&size, &server, &place, subject);
        self.size = Some(size);
    }

    /// Gives the server the model that stands in, with its tokenizer and its parallel sizes.
    fn stand_in(&mut self, engine: EngineKind, model: &str, tensor_parallel: u32) {
        for name in PARALLEL {
            self.options.remove(name);
        }
        self.options.insert(sharding(engine).to_owned(), OptionValue::Whole(i64::from(tensor_parallel)));
        for name in TOKENIZERS {
            if let Some(value) = self.options.get_mut(name) {
                *value = OptionValue::Text(model.to_owned());
            }
        }
        if let Some(fitted) = &mut self.fitted {
            fitted.set_model(model);
            fitted.set_server(&PARALLEL, sharding(engine), &tensor_parallel.to_string());
        }
        if let Some(given) = &mut self.given {
            given.set_parallel(tensor_parallel);
        }
    }

    /// Spreads the model over as many devices as it needs, where the command doesn't say it or says too few.
    fn spread(&mut self, engine: EngineKind, server: &mut ServerOptions, need: &DeviceNeed) {
        let Some(devices) = need.devices else { return };
        let copies =
            server.pipeline_parallel.unwrap_or(1).max(1).saturating_mul(server.data_parallel.unwrap_or(1).max(1));
        let size = (devices / copies).max(1);
        let asked = server.tensor_parallel;
        if asked.unwrap_or(1) == size {
            return;
        }
        let name = asked.and_then(|_| PARALLEL_TENSOR.into_iter().find(|name| self.options.contains_key(*name)));
        let name = name.unwrap_or_else(|| sharding(engine));
        self.options.insert(name.to_owned(), OptionValue::Whole(i64::from(size)));
        server.tensor_parallel = Some(size);
        if let Some(fitted) = &mut self.fitted {
            fitted.set_server(&PARALLEL_TENSOR, name, &size.to_string());
        }
        let kind = if asked.is_some() { DeviationKind::OptionTranslated } else { DeviationKind::OptionAdded };
        self.repairs.push(Deviation {
            kind,
            subject: format!("server.{name}"),
            asked: asked.map_or_else(|| "nothing".to_owned(), |asked| format!("`--{name} {asked}`")),
            run: format!("`--{name} {size}`"),
            reason: format!("`{}` doesn't fit {} of these devices", need.model, asked.unwrap_or(1)),
        });
    }

    fn deadlines(&mut self, size: &Model, server: &ServerOptions, place: &Place<'_>, subject: &Subject<'_>) {
        let preset = subject.options.preset.as_ref();
        let devices = self.need.as_ref().and_then(|need| need.devices).unwrap_or(subject.options.planned_for.count);
        let Some(workload) = &self.workload else { return };
        let tensor_parallel = server.tensor_parallel.unwrap_or(devices).max(1);
        self.rate = service_rate(size, server, workload, place, tensor_parallel);
        if let Some(metric) = self.metric.as_mut().filter(|_| is_held_to_ceiling(subject, &self.options)) {
            metric.ceiling = ceiling(size, server, workload, place, tensor_parallel);
        }
        let launch = Launch { model: size, options: server, workload, place, tensor_parallel };
        let settings = DeadlineSettings::default();
        let history = subject.options.history.get(&subject.task.id).copied().unwrap_or_default();
        let (limits, _) = deadlines(&launch, self.rate.as_ref(), &history, &settings);
        self.start_s = Some(start_s(&launch, &settings));
        self.limits = Some(match (&self.fitted, preset) {
            (None, Some(preset)) => preset.limits(limits),
            _ => limits,
        });
    }

    /// Returns the catalogue's row of the model that is measured.
    pub(super) fn model_row(&self) -> Option<&'a ModelRow> {
        self.row
    }

    /// Returns the task as rules and recipes see it.
    pub(super) fn case<'c>(&'c self, subject: &Subject<'c>) -> Case<'c> {
        Case {
            task: subject.task,
            baseline: subject.baseline,
            human: subject.human,
            given: self.given.as_ref(),
            traits: self.traits.as_ref(),
            workload: self.workload.as_ref(),
            primary: self.metric.as_ref().map(|metric| metric.primary),
            need: self.need.as_ref(),
            device: subject.device,
            devices: Some(subject.options.planned_for.count),
            service_rate_per_s: self.rate.as_ref().map(|rate| rate.requests_per_s),
            knowledge: subject.knowledge,
        }
    }

    /// Returns everything that is wrong: with the command, and by the rules.
    pub(super) fn findings(&self, case: &Case<'_>) -> Vec<Finding> {
        let mut findings = self.found.clone();
        findings.extend(lint(case));
        if case.task.command.is_none() && self.workload.is_some() {
            for finding in findings.iter_mut().filter(|finding| finding.rule == ids::NO_COMMAND) {
                finding.repaired = true;
            }
        }
        findings
    }

    fn traits(&self, subject: &Subject<'_>) -> Option<Traits> {
        let config = self.model.as_ref().and_then(|name| subject.facts.model_configs.get(name));
        config.map(Traits::of_config).or_else(|| Traits::of_row(self.row?))
    }

    /// Returns what the task costs, if it can be loaded at all.
    pub(super) fn cost(&self, subject: &Subject<'_>, sources: &Sources) -> Option<Cost> {
        let workload = self.workload.as_ref()?;
        if self.need.as_ref().is_some_and(|need| need.devices.is_none()) {
            return None;
        }
        let rungs = sources.rungs();
        let limits = self.limits.unwrap_or_else(defaults::limits);
        let builds = sources.builds(subject);
        let devices = self.need.as_ref().and_then(|need| need.devices).unwrap_or(1);
        let looks = default_looks(defaults::MAX_BLOCKS, rungs.len());
        let blocks = looks.last().copied().unwrap_or(defaults::MAX_BLOCKS);
        let input = CostInput {
            rungs: &rungs,
            builds: &builds,
            blocks,
            window_s: defaults::MIN_WINDOW_S,
            start_s: self.start_s.unwrap_or(crate::estimate::START_VLLM_S),
            workload,
            limits: &limits,
            devices,
            device: subject.device,
            download_gb: self.need.as_ref().map_or(0.0, |need| need.weights_gb),
        };
        Some(cost(&input, &subject.options.cost))
    }
}

/// Returns whether the devices that are reckoned with are those of the machine, and each step gives a request one token.
fn is_held_to_ceiling(subject: &Subject<'_>, options: &BTreeMap<String, OptionValue>) -> bool {
    let devices = &subject.facts.host.devices;
    let is_planned = |name: &String| subject.device.is_some_and(|device| device.driver_names.contains(name));
    let speculates = options.keys().any(|name| name.contains("speculative"));
    !devices.is_empty() && devices.iter().all(|device| is_planned(&device.name)) && !speculates
}

/// Options that split a model over devices, by their long and short names.
const PARALLEL: [&str; 9] = [
    "tensor-parallel-size",
    "tp-size",
    "tp",
    "pipeline-parallel-size",
    "pp-size",
    "pp",
    "data-parallel-size",
    "dp-size",
    "dp",
];

/// Those of them that split every layer.
const PARALLEL_TENSOR: [&str; 3] = ["tensor-parallel-size", "tp-size", "tp"];

/// Options that name a tokenizer, which must be the model's own.
const TOKENIZERS: [&str; 2] = ["tokenizer", "tokenizer-path"];

/// Returns the option that splits every layer over devices.
fn sharding(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Sglang => "tp-size",
        EngineKind::Vllm | EngineKind::Generic => "tensor-parallel-size",
    }
}

/// Finds requests that are longer than the context, and a context that is longer than the model's.
fn context_faults(size: &Model, server: &ServerOptions, workload: Option<&Workload>) -> Vec<Finding> {
    let own = size.context;
    let mut found = Vec::new();
    if let Some(asked) = server.max_model_len.filter(|asked| *asked > own) {
        let message = format!("`--max-model-len {asked}` is more than the {own} tokens of `{}`", size.name);
        found.push(finding(ids::FEATURE_CONFLICT, "--max-model-len", message));
    }
    let context = server.max_model_len.unwrap_or(own).min(own);
    let exact = workload.and_then(|workload| Some((workload.prompts.input_tokens()?, workload.output_tokens)));
    if let Some((input, output)) = exact.filter(|(input, output)| u64::from(*input) + u64::from(*output) > context) {
        let message =
            format!("prompts of {input} tokens with answers of {output} don't fit the context of {context} tokens");
        found.push(finding(ids::FEATURE_CONFLICT, "--max-model-len", message));
    }
    found
}

/// Reads the command and makes it fit; without a known baseline nothing can be said of it.
fn fitted<'a>(subject: &Subject<'a>) -> (Option<Fitted<'a>>, Vec<Finding>) {
    let (Some(command), Some(baseline)) = (&subject.task.command, subject.baseline) else { return (None, Vec::new()) };
    let asked = Asked {
        command,
        server_command: subject.task.server_command.as_deref(),
        engine: subject.task.engine,
        model: subject.task.model.as_deref(),
        baseline,
        human: subject.human,
    };
    match fit::fit(&asked, subject.knowledge) {
        Ok(fitted) => {
            let found = fitted.findings.clone();
            (Some(fitted), found)
        }
        Err(findings) => (None, findings),
    }
}

fn sized(subject: &Subject<'_>, name: &str) -> Option<Model> {
    model(&subject.knowledge.models, name, subject.facts.model_configs.get(name)).ok()
}
