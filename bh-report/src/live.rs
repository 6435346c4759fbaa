//! Serves the page while the program runs: on this machine only, read-only, to clients that know the address.

use crate::Run;
use serde_json::json;
use std::fs::File;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The variable that makes a program rewrite the page's files, and the interval in seconds.
pub const WATCH: (&str, &str) = ("BH_WATCH", "0.5");

/// The shortest interval between updates of the data.
const FRESH: Duration = Duration::from_millis(400);
/// Concurrent connections, at most.
const CONNECTIONS: usize = 32;
/// The longest request in bytes.
const REQUEST: usize = 8 << 10;
/// The time limit of a stalled connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server; it ends with the process.
pub struct Live {
    address: String,
    shared: Arc<Shared>,
}

struct Shared {
    directory: PathBuf,
    /// The end of the address: a secret that others on this machine cannot guess.
    token: String,
    state: Mutex<State>,
}

struct State {
    program: String,
    begin: Instant,
    /// The data, and the time of its update.
    data: String,
    made: Option<Instant>,
    /// Connections that wait for the final data.
    watchers: Vec<TcpStream>,
}

impl Live {
    /// Serves the page for a program that writes its files to a directory, with the variables of [`crate::environment`]
    /// and [`WATCH`].
    pub fn begin(directory: PathBuf, program: String) -> Result<Live> {
        let mut bytes = [0u8; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = format!("http://127.0.0.1:{}/{token}", listener.local_addr()?.port());
        let begin = Instant::now();
        let state = State { program, begin, data: String::new(), made: None, watchers: Vec::new() };
        let shared = Arc::new(Shared { directory, token, state: Mutex::new(state) });
        let own = Arc::clone(&shared);
        std::thread::Builder::new().name("bh-live".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                // Browsers open connections in advance, so each gets a thread. Clients that do not send or read in time
                // are dropped, as are those with too many connections.
                let own = Arc::clone(&own);
                if Arc::strong_count(&own) <= CONNECTIONS {
                    let _ = std::thread::Builder::new().spawn(move || own.answer(stream));
                }
            }
        })?;
        Ok(Live { address, shared })
    }

    /// The page's address for a browser.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Ends the server after the program: sends the full report to all open pages, then returns.
    pub fn end(&self, run: &Run) {
        let watchers = std::mem::take(&mut self.shared.lock().watchers);
        if watchers.is_empty() {
            return;
        }
        let data = crate::data(&self.shared.directory, run).unwrap_or_else(|reason| json!({ "failed": reason }));
        let data = data.to_string();
        for mut watcher in watchers {
            let _ = finish(&mut watcher, &data);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Answers a request for the page or its data.
    fn answer(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = request(&mut stream)?;
        let path = request.strip_prefix("GET /").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        match path.strip_prefix(&self.token) {
            Some("") => send(&mut stream, "200 OK", "text/html", &crate::live_page()),
            Some("/data") => send(&mut stream, "200 OK", "application/json", &self.data()),
            Some("/end") => {
                let mut state = self.lock();
                state.watchers.retain(is_open);
                if state.watchers.len() < CONNECTIONS {
                    // Clients become watchers once they have this answer's head.
                    begin(&mut stream, "200 OK", "application/json", None)?;
                    state.watchers.push(stream);
                }
                Ok(())
            }
            _ => send(&mut stream, "404 Not Found", "text/plain", "There is nothing here.\n"),
        }
    }

    /// The current data.
    fn data(&self) -> String {
        let mut state = self.lock();
        if state.made.is_none_or(|made| made.elapsed() > FRESH) {
            let seconds = state.begin.elapsed().as_secs_f64();
            let run = Run { program: state.program.clone(), seconds, failure: None, running: true };
            // There is none before the program's first array.
            let data = crate::data(&self.directory, &run).unwrap_or_else(|_| json!({ "waiting": true }));
            state.data = data.to_string();
            state.made = Some(Instant::now());
        }
        state.data.clone()
    }
}

/// Is the peer of a connection still there?
fn is_open(stream: &TcpStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let next = stream.peek(&mut [0]);
    let _ = stream.set_nonblocking(false);
    match next {
        Ok(count) => count > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// The first line of a request, after its complete head.
fn request(stream: &mut TcpStream) -> Result<String> {
    let (mut head, mut part) = (Vec::new(), [0u8; 1024]);
    while head.len() < REQUEST && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut part)? {
            0 => break,
            count => head.extend_from_slice(&part[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned())
}

/// Sends an answer.
fn send(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> Result<()> {
    begin(stream, status, kind, Some(body.len()))?;
    finish(stream, body)
}

/// Begins an answer that must not be cached, for a page that may load nothing from elsewhere. Without a length, the end
/// of the connection ends the answer.
fn begin(stream: &mut TcpStream, status: &str, kind: &str, length: Option<usize>) -> Result<()> {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";
    let length = length.map_or_else(String::new, |length| format!("Content-Length: {length}\r\n"));
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\n{length}Cache-Control: no-store\r\n\
         Content-Security-Policy: {policy}\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())
}

/// Ends an answer that has begun.
fn finish(stream: &mut TcpStream, body: &str) -> Result<()> {
    stream.write_all(body.as_bytes())?;
    stream.shutdown(Shutdown::Write)
}
