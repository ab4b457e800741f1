//! What a worker does in HTTP/2, where one connection carries many requests.

use std::io;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use isobench_schema::failure::FailureClass;

use super::connection::Multiplex;
use super::flight::Flight;
use super::phase::PhaseRun;
use super::reading::Next;
use super::table::Key;
use super::work::Work;
use crate::http2::{Event, EventKind, RequestHead, StreamId};

/// What has become of a request after an event.
enum Turn {
    /// It goes on.
    On,
    /// It has ended; the rest of its stream, if any, isn't wanted.
    Ended,
    /// The server hasn't begun with it.
    Refused,
}

impl PhaseRun<'_> {
    /// Returns a connection of HTTP/2 that takes one more request at once.
    pub(super) fn roomy(&mut self) -> Option<Key> {
        let multiplexed = self.worker.multiplexed.clone();
        multiplexed.into_iter().find(|key| {
            let connection = self.worker.connections.get_mut(*key);
            connection.and_then(|connection| connection.multiplex.as_ref()).is_some_and(|m| m.session.has_room())
        })
    }

    /// Sends the request of `flight` on a connection of HTTP/2.
    pub(super) fn send_frames(&mut self, key: Key, mut flight: Flight) -> io::Result<()> {
        let scratch = &mut self.worker.scratch;
        scratch.clear();
        let written = flight.write_body(self.work, scratch);
        let Some(connection) = self.worker.connections.get_mut(key) else { return self.open(Some(flight)) };
        let Some(multiplex) = &mut connection.multiplex else { return self.open(Some(flight)) };
        let out_ns = self.work.context.clock.now_ns();
        let sent = head(self.work).and_then(|head| {
            let body = Bytes::copy_from_slice(scratch);
            multiplex.session.send_request(head, body).map_err(|error| error.to_string())
        });
        match sent {
            Ok(stream) => {
                flight.state.record.first_out_ns = Some(out_ns);
                flight.state.record.sent_ns = Some(out_ns);
                multiplex.flights.push((stream, flight));
                connection.put_frames(scratch);
            }
            Err(reason) => {
                flight.state.answer.fail_by(FailureClass::ConnectionFailed, reason);
                self.land(flight)?;
            }
        }
        written?;
        self.flush(key)
    }

    /// Takes bytes of a connection of HTTP/2.
    pub(super) fn take_frames(&mut self, key: Key, length: usize, at_ns: u64, lag_ns: Option<u64>) -> io::Result<()> {
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        if let Some(multiplex) = &mut connection.multiplex {
            multiplex.session.feed(self.worker.buffer.get(..length).unwrap_or_default(), at_ns);
        }
        self.take_events(key, lag_ns)
    }

    /// Takes the end of a connection of HTTP/2.
    pub(super) fn end_frames(&mut self, key: Key, how: &str, at_ns: u64) -> io::Result<()> {
        if let Some(connection) = self.worker.connections.get_mut(key)
            && let Some(multiplex) = &mut connection.multiplex
        {
            multiplex.session.end(how, at_ns);
        }
        self.take_events(key, None)?;
        for mut flight in self.close(key) {
            flight.state.answer.fail_by(FailureClass::ConnectionFailed, how);
            self.land(flight)?;
        }
        Ok(())
    }

    /// Takes everything that has happened to the requests of a connection.
    fn take_events(&mut self, key: Key, lag_ns: Option<u64>) -> io::Result<()> {
        let (mut ended, mut refused) = (Vec::new(), Vec::new());
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(()) };
        let Some(multiplex) = &mut connection.multiplex else { return Ok(()) };
        while let Some(event) = multiplex.session.next_event() {
            let stream = event.stream;
            match turn(multiplex, event, lag_ns) {
                Turn::On => {}
                Turn::Ended => ended.extend(take_out(multiplex, stream)),
                Turn::Refused => refused.extend(take_out(multiplex, stream)),
            }
        }
        let is_over = multiplex.session.over().is_some();
        let is_empty = multiplex.flights.is_empty();
        connection.put_frames(&mut self.worker.scratch);
        if is_over {
            self.worker.multiplexed.retain(|other| *other != key);
        }
        if is_over && is_empty {
            self.close(key);
        } else {
            self.flush(key)?;
        }
        ended.into_iter().try_for_each(|flight| self.land(flight))?;
        refused.into_iter().try_for_each(|flight| self.again(flight))
    }

    /// Gives up the requests of a connection that `is_due` picks; returns them.
    pub(super) fn give_up(&mut self, key: Key, is_due: impl Fn(&Flight) -> bool) -> io::Result<Vec<Flight>> {
        let Some(connection) = self.worker.connections.get_mut(key) else { return Ok(Vec::new()) };
        let Some(multiplex) = &mut connection.multiplex else { return Ok(self.close(key)) };
        let due: Vec<StreamId> =
            multiplex.flights.iter().filter(|(_, flight)| is_due(flight)).map(|(stream, _)| *stream).collect();
        let flights = due.into_iter().filter_map(|stream| take_out(multiplex, stream)).collect();
        connection.put_frames(&mut self.worker.scratch);
        self.flush(key)?;
        Ok(flights)
    }
}

/// Takes a request out of its connection, and gives up what is left of its stream.
fn take_out(multiplex: &mut Multiplex, stream: StreamId) -> Option<Flight> {
    let place = multiplex.flights.iter().position(|(other, _)| *other == stream)?;
    multiplex.session.cancel(stream);
    Some(multiplex.flights.swap_remove(place).1)
}

/// Takes what has happened to a request.
fn turn(multiplex: &mut Multiplex, event: Event, lag_ns: Option<u64>) -> Turn {
    let Event { stream, at_ns, kind } = event;
    let Some((_, flight)) = multiplex.flights.iter_mut().find(|(other, _)| *other == stream) else { return Turn::On };
    let Flight { state, reading, .. } = flight;
    state.record.lag_ns = state.record.lag_ns.max(lag_ns);
    let at_ns = at_ns.max(state.record.intended_ns);
    let next = match kind {
        EventKind::Head { status, content_type, content_encoding } => {
            state.record.first_byte_ns.get_or_insert(at_ns);
            if let Some(encoding) = content_encoding {
                let message = format!("the answer is encoded as `{encoding}`, but the request asked for `identity`");
                state.answer.fail_by(FailureClass::StreamMalformed, message);
                return Turn::Ended;
            }
            reading.begin(state, status, content_type);
            Next::Read
        }
        EventKind::Data(bytes) => reading.take_body(state, &bytes, at_ns),
        EventKind::End => {
            reading.end_body(state, at_ns);
            return Turn::Ended;
        }
        EventKind::Reset { refused: true, .. } if state.record.first_byte_ns.is_none() => return Turn::Refused,
        EventKind::Reset { reason, .. } => {
            reading.cut_body(state, &format!("the server reset the stream ({reason})"), at_ns);
            return Turn::Ended;
        }
    };
    match next {
        Next::Read => Turn::On,
        Next::KeepConnection | Next::DropConnection | Next::Unanswered(_) => Turn::Ended,
    }
}

/// Returns the head of a request.
fn head(work: &Work) -> Result<RequestHead, String> {
    let endpoint = work.context.target.endpoint();
    let uri = format!("{}://{}{}", endpoint.scheme(), endpoint.host(), work.path);
    let uri: Uri = uri.parse().map_err(|error| format!("`{uri}` is no address for HTTP/2: {error}"))?;
    let mut fields = HeaderMap::new();
    let own = [("accept", work.accept), ("content-type", "application/json")];
    let further = endpoint.headers().iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in own.into_iter().chain(further) {
        let name: HeaderName = name.parse().map_err(|_invalid| format!("`{name}` is no header's name"))?;
        let value = HeaderValue::from_str(value).map_err(|_invalid| format!("the header `{name}` can't be sent"))?;
        fields.append(name, value);
    }
    Ok(RequestHead { method: Method::POST, uri, fields })
}
