//! The page while the program runs: served on this machine only, to who knows the address, and read-only.

use crate::Run;
use serde_json::json;
use std::fs::File;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The variable under which a program writes anew what the page shows, and after how many seconds it does.
pub const WATCH: (&str, &str) = ("BH_WATCH", "0.5");

/// Data is not made more often than this.
const FRESH: Duration = Duration::from_millis(400);
/// The most connections that are served at a time.
const CONNECTIONS: usize = 32;
/// The longest request.
const REQUEST: usize = 8 << 10;
/// How long the other side of a connection may stand still: a limit against one that never goes on.
const PATIENCE: Duration = Duration::from_secs(60);

/// The server; it ends with the process.
pub struct Live {
    address: String,
    shared: Arc<Shared>,
}

struct Shared {
    directory: PathBuf,
    /// What the address ends with: nobody else on this machine can guess it.
    token: String,
    state: Mutex<State>,
}

struct State {
    program: String,
    begin: Instant,
    /// What is served, and when it was made.
    data: String,
    made: Option<Instant>,
    /// The connections of those that watch: they get the data of the end.
    watchers: Vec<TcpStream>,
}

impl Live {
    /// Serves the page of a program that leaves its files in a directory, as [`crate::environment`] and [`WATCH`] make it.
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
                // Browsers open connections before they need them, so each waits for itself. Who does not ask or read in time
                // gets nothing, as does who opens many.
                let own = Arc::clone(&own);
                if Arc::strong_count(&own) <= CONNECTIONS {
                    let _ = std::thread::Builder::new().spawn(move || own.answer(stream));
                }
            }
        })?;
        Ok(Live { address, shared })
    }

    /// Where a browser finds the page.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The program has ended: the pages that are open get the whole report, and this returns then.
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

    /// Answers one request: the page, or its data.
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
                    // Who has read this is among the watchers.
                    begin(&mut stream, "200 OK", "application/json", None)?;
                    state.watchers.push(stream);
                }
                Ok(())
            }
            _ => send(&mut stream, "404 Not Found", "text/plain", "There is nothing here.\n"),
        }
    }

    /// The data as it is now.
    fn data(&self) -> String {
        let mut state = self.lock();
        if state.made.is_none_or(|made| made.elapsed() > FRESH) {
            let seconds = state.begin.elapsed().as_secs_f64();
            let run = Run { program: state.program.clone(), seconds, failure: None, running: true };
            // There is none before the program has made its first array.
            let data = crate::data(&self.directory, &run).unwrap_or_else(|_| json!({ "waiting": true }));
            state.data = data.to_string();
            state.made = Some(Instant::now());
        }
        state.data.clone()
    }
}

/// Is the other side of a connection still there?
fn is_open(stream: &TcpStream) -> bool {
    let _ = stream.set_nonblocking(true);
    let next = stream.peek(&mut [0]);
    let _ = stream.set_nonblocking(false);
    match next {
        Ok(count) => count > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// The first line of a request whose head has come as a whole.
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

/// Begins an answer that no cache keeps, and a page that may load nothing from elsewhere. One of unknown length ends with the
/// connection.
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
