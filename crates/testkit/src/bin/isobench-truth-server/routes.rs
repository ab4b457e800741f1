//! Which request is answered how.

use serde_json::{Value, json};

use crate::config::Framing;
use crate::connection::Key;
use crate::event::{self, Voice};
use crate::gzip::Gzip;
use crate::metrics;
use crate::request::{Api, Ask, Request};
use crate::server::Server;
use crate::stream::{Reply, Stream};
use crate::truth::{Outcome, Record};

/// The longest context that the model claims.
const MODEL_LENGTH: u64 = 131_072;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

impl Server {
    /// Answers a request that arrived at `arrived` nanoseconds.
    pub(crate) fn answer(&mut self, key: Key, request: &Request, arrived: u64) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.close_after = request.close;
            if connection.answers == 0 && matches!(request.path.as_str(), "/ctl" | "/stats" | "/log") {
                // Who asks for the truth isn't a part of it.
                self.truth.accepts = self.truth.accepts.saturating_sub(1);
            }
        }
        match request.path.as_str() {
            "/v1/completions" => self.generate(key, Api::Completions, &request.body, arrived),
            "/v1/chat/completions" => self.generate(key, Api::Chat, &request.body, arrived),
            "/v1/embeddings" => self.embed(key, &request.body, arrived),
            path => {
                let (status, kind, body) = self.at_once(path, request);
                self.respond(key, status, kind, &body);
            }
        }
    }

    /// Returns an answer that takes no time: status, type and body.
    fn at_once(&mut self, path: &str, request: &Request) -> (u16, &'static str, String) {
        let json = |value: Value| (200, JSON, value.to_string());
        match path {
            "/health" | "/ping" | "/start_profile" | "/stop_profile" => (200, TEXT, String::new()),
            "/version" => json(json!({ "version": concat!(env!("CARGO_PKG_VERSION"), "+truth") })),
            "/v1/models" => {
                // The model's name is already as JSON has it.
                let id = &self.model;
                let body = format!(
                    r#"{{"object":"list","data":[{{"id":"{id}","object":"model","created":1764275000,"owned_by":"isobench","root":"{id}","parent":null,"max_model_len":{MODEL_LENGTH}}}]}}"#
                );
                (200, JSON, body)
            }
            "/get_model_info" | "/model_info" => {
                (200, JSON, format!(r#"{{"model_path":"{}","is_generation":true}}"#, self.model))
            }
            "/get_server_info" | "/server_info" => json(json!({})),
            "/tokenize" => match Ask::read(&request.body) {
                Ok(ask) => {
                    let count = ask.prompt().tokens;
                    let tokens: Vec<u64> = (0..count).collect();
                    json(json!({ "count": count, "max_model_len": MODEL_LENGTH, "tokens": tokens }))
                }
                Err(error) => (400, JSON, problem(400, &error.to_string())),
            },
            "/reset_prefix_cache" => {
                self.truth.prefix_cache_resets += 1;
                self.prefixes.clear();
                (200, TEXT, String::new())
            }
            "/flush_cache" => {
                self.truth.cache_flushes += 1;
                self.prefixes.clear();
                (200, TEXT, "Cache flushed.\n".to_owned())
            }
            "/metrics" => (200, TEXT, metrics::page(self)),
            "/ctl" => match self.set(&request.query) {
                Ok(()) => (200, TEXT, self.config.show()),
                Err(error) => (400, TEXT, format!("{error}\n")),
            },
            "/stats" => json(self.truth.stats(self.now())),
            "/log" => (200, "text/csv", self.truth.log()),
            _ => (404, JSON, problem(404, &format!("there is no `{path}`"))),
        }
    }

    /// Sends a whole answer.
    fn respond(&mut self, key: Key, status: u16, kind: &str, body: &str) {
        let answer = whole(status, kind, body.as_bytes());
        self.transmit(key, &answer);
        self.after_answer(key);
    }

    /// Refuses a request; returns whether it is one of those that are to be refused.
    fn refuses(&mut self, key: Key, arrived: u64) -> bool {
        self.requests += 1;
        if self.config.http_every == 0 || !self.requests.is_multiple_of(self.config.http_every) {
            return false;
        }
        self.refuse(key, arrived, self.config.http_status, "refused as told");
        true
    }

    fn refuse(&mut self, key: Key, arrived: u64, status: u64, why: &str) {
        if let Some(connection) = self.connections.get_mut(key) {
            self.truth.record(Record {
                connection: connection.number,
                accepted: connection.accepted,
                arrived,
                first: 0,
                last: 0,
                tokens: 0,
                outcome: Outcome::Refused,
                streamed: false,
                asked: 0,
                served: 0,
            });
        }
        self.respond(key, u16::try_from(status).unwrap_or(500), JSON, &problem(status, why));
    }

    fn embed(&mut self, key: Key, body: &[u8], arrived: u64) {
        if self.refuses(key, arrived) {
            return;
        }
        let ask = match Ask::read(body) {
            Ok(ask) => ask,
            Err(error) => return self.refuse(key, arrived, 400, &error.to_string()),
        };
        let prompt = ask.prompt();
        let vector: Vec<f64> = (0..ask.dimensions()).map(|place| if place == 0 { 1.0 } else { 0.0 }).collect();
        let data: Vec<Value> = (0..ask.inputs())
            .map(|index| json!({ "object": "embedding", "index": index, "embedding": vector }))
            .collect();
        let usage = json!({ "prompt_tokens": prompt.tokens, "total_tokens": prompt.tokens });
        // The model's name is already as JSON has it.
        let body =
            format!(r#"{{"object":"list","data":{},"model":"{}","usage":{usage}}}"#, Value::from(data), self.model);
        let voice = Voice::new(Api::Completions, self.requests, &self.model, &self.config);
        let mut stream = Stream::new(voice, Reply::Whole(whole(200, JSON, body.as_bytes())), arrived);
        stream.voice.prompt_tokens = prompt.tokens;
        self.admit(key, Box::new(stream));
    }

    fn generate(&mut self, key: Key, api: Api, body: &[u8], arrived: u64) {
        if self.refuses(key, arrived) {
            return;
        }
        let ask = match Ask::read(body) {
            Ok(ask) => ask,
            Err(error) => return self.refuse(key, arrived, 400, &error.to_string()),
        };
        let prompt = ask.prompt();
        self.prefixes.look_up(&prompt);
        let asked = ask.tokens().unwrap_or(self.config.deftok).max(1);
        let tokens = asked.saturating_sub(self.config.short).max(1);
        let mut voice = Voice::new(api, self.requests, &self.model, &self.config);
        let (usage, continuous) = ask.usage();
        voice.continuous |= continuous;
        voice.ids |= ask.token_ids();
        voice.prompt_tokens = prompt.tokens;
        let reply = if ask.stream() {
            Reply::Events
        } else {
            let body = voice.whole(&self.config, &self.words, &self.model, tokens);
            Reply::Whole(whole(200, JSON, &body))
        };
        let mut stream = Box::new(Stream::new(voice, reply, arrived));
        (stream.usage, stream.asked, stream.tokens) = (usage, asked, tokens);
        if ask.stream() {
            self.open(key, api, &mut stream);
        }
        self.admit(key, stream);
    }

    /// Sends a stream's head, or keeps it for the first token.
    fn open(&mut self, key: Key, api: Api, stream: &mut Stream) {
        let config = &self.config;
        let Some(connection) = self.connections.get_mut(key) else { return };
        stream.gzip = config.gzip.then(Gzip::new);
        let (mut opening, early) = (Vec::new(), (api == Api::Chat && config.role == 2) || config.empty);
        if early || (api == Api::Chat && config.role == 1) {
            stream.voice.opening(config, &mut opening);
        }
        let framing = match config.framing {
            Framing::Chunked if config.trailers => "transfer-encoding: chunked\r\ntrailer: x-truth\r\n".to_owned(),
            Framing::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
            Framing::Length => {
                let length = stream.body_length(config, &self.words, &self.model, &opening);
                format!("content-length: {length}\r\n")
            }
            Framing::Close => {
                connection.close_after = true;
                "connection: close\r\n".to_owned()
            }
        };
        let gzip = if config.gzip { "content-encoding: gzip\r\n" } else { "" };
        let status = "HTTP/1.1 200 OK\r\n";
        let head = format!("content-type: {}\r\ncache-control: no-cache\r\n{gzip}{framing}\r\n", config.ctype);
        let mut start = [status, &head].concat().into_bytes();
        if !opening.is_empty() {
            event::frame(config, stream.gzip.as_mut(), &opening, if early { &mut start } else { &mut stream.start });
        }
        if config.slow_head_us > 0 {
            let rest = start.split_off(status.len());
            connection.pieces.push_back(rest);
            let at = stream.arrived + config.slow_head_us * 1000;
            self.transmit_parts(key, &start);
            self.schedule(key, Some(at));
        } else if !config.late_head && (early || config.ttft_us > 0 || config.slots > 0) {
            self.transmit_parts(key, &start);
        } else {
            start.append(&mut stream.start);
            stream.start = start;
        }
    }
}

/// Returns the bytes of an answer with its length.
fn whole(status: u16, kind: &str, body: &[u8]) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        429 => "Too Many Requests",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    };
    let wait = if matches!(status, 429 | 503) { "retry-after: 1\r\n" } else { "" };
    let length = body.len();
    let head = format!("HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{wait}\r\n");
    [head.as_bytes(), body].concat()
}

/// Returns the body of a refusal.
fn problem(status: u64, why: &str) -> String {
    json!({ "error": { "message": why, "type": "TruthServerError", "param": null, "code": status } }).to_string()
}
