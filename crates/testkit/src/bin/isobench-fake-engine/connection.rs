//! One connection: its requests, one after the other.

use std::io::{self, BufReader, Read as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Instant;

use isobench_testkit::Fault;
use serde_json::{Value, json};

use crate::answer::{Answer, Api};
use crate::engine::Engine;
use crate::http;
use crate::log::log;
use crate::mishap::{Mishap, at_request, of_request};

/// Serves a connection until the client closes it.
pub(crate) fn serve(stream: &TcpStream, engine: &Engine) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream);
    while let Some(request) = http::read(&mut input)? {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/health" | "/ping") if engine.has(&Fault::NeverReady) => {
                http::respond(stream, "503 Service Unavailable", r#"{"status":"loading"}"#)?;
            }
            ("GET", "/health" | "/ping") => http::respond(stream, "200 OK", "{}")?,
            ("GET", "/version") => http::respond(stream, "200 OK", r#"{"version":"0.1.0+fake"}"#)?,
            ("GET", "/v1/models") => {
                let model = json!({ "id": engine.args.model, "object": "model", "owned_by": "isobench" });
                http::respond(stream, "200 OK", &json!({ "object": "list", "data": [model] }).to_string())?;
            }
            ("POST", "/v1/completions") => generate(stream, engine, Api::Completions, &request.body)?,
            ("POST", "/v1/chat/completions") => generate(stream, engine, Api::Chat, &request.body)?,
            _ => http::respond(stream, "404 Not Found", &error("there is no such path", 404))?,
        }
        if request.close {
            break;
        }
    }
    Ok(())
}

fn generate(stream: &TcpStream, engine: &Engine, api: Api, body: &[u8]) -> io::Result<()> {
    let number = engine.count_request();
    at_request(engine, number);
    let mishap = of_request(engine, number);
    if engine.has(&Fault::NeverReady) {
        return http::respond(stream, "503 Service Unavailable", &error("the model is still loading", 503));
    }
    match mishap {
        Some(Mishap::Die) => {
            log(&format!("ERROR the engine core died while request {number} came in"));
            engine.exit(1);
            loop {
                thread::park();
            }
        }
        Some(Mishap::Http500) => {
            return http::respond(stream, "500 Internal Server Error", &error("the engine core failed", 500));
        }
        Some(Mishap::Stall | Mishap::Malformed | Mishap::ErrorEvent | Mishap::CloseEarly) | None => {}
    }
    let answer = serde_json::from_slice(body).ok().and_then(|body: Value| Answer::new(api, &body, engine));
    let Some(answer) = answer else {
        return http::respond(stream, "400 Bad Request", &error("the body has no prompt or is no JSON", 400));
    };
    let place = engine.take_place();
    let start = Instant::now();
    if !answer.stream {
        return whole(stream, &answer, mishap, start);
    }
    http::start_stream(stream)?;
    let groups = answer.groups(engine.args.coalesce);
    let half = groups.len() / 2;
    for (number, group) in groups.iter().enumerate() {
        if number == half {
            match mishap {
                Some(Mishap::Stall) => {
                    drop(place);
                    return wait_for_client(stream);
                }
                Some(Mishap::Malformed) => http::event(stream, r#"{"choices":[{"index":0,"text":" wo"#)?,
                Some(Mishap::ErrorEvent) => {
                    http::event(stream, &error("the engine core failed", 500))?;
                    http::event(stream, "[DONE]")?;
                    return http::end_stream(stream);
                }
                Some(Mishap::CloseEarly) => return close(stream),
                Some(Mishap::Die | Mishap::Http500) | None => {}
            }
        }
        sleep_until(start, answer.time_of(group));
        if number == 0
            && let Some(first) = answer.opening()
        {
            http::event(stream, &first)?;
        }
        http::event(stream, &answer.event(group))?;
    }
    if let Some(usage) = answer.usage_event() {
        http::event(stream, &usage)?;
    }
    http::event(stream, "[DONE]")?;
    http::end_stream(stream)
}

/// Answers a request that didn't ask for a stream.
fn whole(stream: &TcpStream, answer: &Answer<'_>, mishap: Option<Mishap>, start: Instant) -> io::Result<()> {
    match mishap {
        Some(Mishap::Stall) => return wait_for_client(stream),
        Some(Mishap::CloseEarly) => return close(stream),
        Some(Mishap::Malformed) => return http::respond(stream, "200 OK", r#"{"choices":["#),
        Some(Mishap::ErrorEvent) => {
            return http::respond(stream, "500 Internal Server Error", &error("the engine core failed", 500));
        }
        Some(Mishap::Die | Mishap::Http500) | None => {}
    }
    sleep_until(start, answer.time_of_all());
    http::respond(stream, "200 OK", &answer.body())
}

/// Returns an error body as vLLM writes it.
fn error(message: &str, code: u16) -> String {
    json!({ "error": { "message": message, "type": "InternalServerError", "param": null, "code": code } }).to_string()
}

/// Waits until the client gives up.
fn wait_for_client(mut stream: &TcpStream) -> io::Result<()> {
    let mut buffer = [0; 1024];
    while stream.read(&mut buffer)? > 0 {}
    close(stream)
}

fn close(stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Both)?;
    Err(io::ErrorKind::ConnectionAborted.into())
}

/// Sleeps until `after` has passed since `start`; every token has its own deadline, so that lateness doesn't add up.
fn sleep_until(start: Instant, after: std::time::Duration) {
    thread::sleep(after.saturating_sub(start.elapsed()));
}
