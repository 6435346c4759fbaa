//! The page while a program runs: access, and its contents over time.

use bh_report::Run;
use bh_report::live::Live;
use serde_json::Value;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

/// The server's answer to a request for a path, with its head.
fn ask(address: &str, method: &str, path: &str) -> String {
    let host = address.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The path of an address.
fn path(address: &str) -> &str {
    &address[address.rfind('/').unwrap()..]
}

fn data(live: &Live) -> Value {
    let answer = ask(live.address(), "GET", &format!("{}/data", path(live.address())));
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// The data once a condition holds: the server does not update recent data.
fn until(live: &Live, holds: impl Fn(&Value) -> bool) -> Value {
    std::iter::repeat_with(|| data(live)).find(holds).unwrap()
}

/// A connection that waits for the end, after the head of the answer.
fn watch(live: &Live) -> TcpStream {
    let host = live.address().strip_prefix("http://").unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {}/end HTTP/1.1\r\nHost: {host}\r\n\r\n", path(live.address())).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    stream
}

fn serve(name: &str) -> (PathBuf, Live) {
    let directory = std::env::temp_dir().join(format!("bh-live-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let live = Live::begin(directory.clone(), "python a.py".into()).unwrap();
    (directory, live)
}

#[test]
fn only_who_knows_the_address_gets_the_page_and_nobody_changes_anything() {
    let (directory, live) = serve("address");
    let token = path(live.address()).to_owned();
    assert!(live.address().starts_with("http://127.0.0.1:") && token.len() == 33, "{}", live.address());
    let page = ask(live.address(), "GET", &token);
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("watch();") && page.contains("connect-src 'self'"),
        "{page}"
    );
    let wrong = format!("/{}", "0".repeat(32));
    for (method, path) in
        [("GET", "/"), ("GET", &*wrong), ("POST", &*token), ("GET", &format!("{token}/../x")), ("", "")]
    {
        assert!(ask(live.address(), method, path).starts_with("HTTP/1.1 404"), "{method} {path}");
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_page_waits_then_shows_what_there_is_and_then_the_end() {
    let (directory, live) = serve("stages");
    assert_eq!(data(&live)["waiting"], true);
    fs::write(directory.join("trace.json"), r#"{"traceEvents":[]}"#).unwrap();
    fs::write(directory.join("statistics.json"), r#"{"filter.batches":40}"#).unwrap();
    let now = until(&live, |data| data["waiting"].is_null());
    assert_eq!((&now["running"], &now["roof"]), (&Value::Bool(true), &Value::Null));
    assert_eq!(now["counters"][0]["filter.batches"], 40);
    assert_eq!(now["batch"], Value::Null);
    let running = r#"{"node.batch_blocks":12,"node.batch_blocks_done":5}"#;
    fs::write(directory.join("statistics.json"), running).unwrap();
    let now = until(&live, |data| !data["batch"].is_null());
    assert_eq!((&now["batch"]["kernels"], &now["batch"]["done"]), (&12.into(), &5.into()));
    let ([first, second], gone) = ([(); 2].map(|()| watch(&live)), watch(&live));
    drop(gone);
    let failure = Some("the program failed".to_owned());
    live.end(&Run { program: "python a.py".into(), seconds: 2.0, failure, running: false });
    for mut watcher in [first, second] {
        let mut text = String::new();
        watcher.read_to_string(&mut text).unwrap();
        let last: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&last["running"], &last["failure"]), (&Value::Bool(false), &"the program failed".into()));
        assert!(last["roof"]["bytes"].as_f64() > Some(0.0));
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn connections_that_ask_for_nothing_keep_nobody_waiting() {
    let (directory, live) = serve("idle");
    let host = live.address().strip_prefix("http://").unwrap().split('/').next().unwrap();
    let idle: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(host).unwrap()).collect();
    assert_eq!(data(&live)["waiting"], true);
    // The server still waits for requests on the earlier connections.
    for mut stream in idle {
        stream.set_nonblocking(true).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn nobody_is_waited_for_who_does_not_watch() {
    let (directory, live) = serve("alone");
    live.end(&Run { program: String::new(), seconds: 0.0, failure: None, running: false });
    fs::remove_dir_all(directory).unwrap();
}
