//! One rank of a host reports for all that wait there: the first to arrive, to which the others connect. A rank whose
//! limit expires asks it to report. No rank ends before the message is printed, because the launcher ends the job when
//! the first rank fails.

use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// The longest wait for the reporter's answer, or for the launcher to read the message.
const ANSWER: Duration = Duration::from_secs(60);

/// How the wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The ranks have met.
    Met,
    /// They have not met, and a message was printed.
    Reported,
}

/// How the wait of a rank with a reporter ended.
enum PeerEvent {
    Is(Outcome),
    /// The reporter ended without a message.
    Gone,
}

/// Waits until `over` closes, at most for `limit`; then one of the ranks at this address calls `print`.
pub fn wait(over: &UnixStream, limit: Duration, address: Option<&SocketAddr>, print: impl Fn()) -> Outcome {
    let end = Instant::now() + limit;
    loop {
        let listener = match address.map(UnixListener::bind_addr) {
            Some(Err(error)) if error.kind() == ErrorKind::AddrInUse => None,
            Some(Ok(listener)) => Some(Some(listener)),
            // Without an address, each rank reports for itself.
            _ => Some(None),
        };
        if let Some(listener) = listener {
            return report(over, end, listener.as_ref(), print);
        }
        let Some(Ok(reporter)) = address.map(UnixStream::connect_addr) else {
            // The reporter has just ended.
            std::thread::yield_now();
            continue;
        };
        match follow(over, end, &reporter) {
            PeerEvent::Is(outcome) => return outcome,
            PeerEvent::Gone => {}
        }
    }
}

/// The reporter's side.
fn report(over: &UnixStream, end: Instant, listener: Option<&UnixListener>, print: impl Fn()) -> Outcome {
    let mut others: Vec<UnixStream> = Vec::new();
    loop {
        let files = [over.as_raw_fd(), listener.map_or(-1, AsRawFd::as_raw_fd)];
        let files: Vec<RawFd> = files.into_iter().chain(others.iter().map(AsRawFd::as_raw_fd)).collect();
        let ready = ready(&files, end);
        let mut asked = !ready.contains(&true);
        if ready[0] {
            return Outcome::Met;
        }
        let mut received = ready[2..].iter();
        others.retain_mut(|other| {
            !received.next().is_some_and(|&received| received) || {
                let is_there = receive_byte(other);
                asked |= is_there;
                is_there
            }
        });
        if ready[1] {
            others.extend(accepted(listener));
        }
        if asked {
            break;
        }
    }
    print();
    wait_until_read();
    // Ranks that connected in the meantime get the answer, too.
    let _ = listener.map(|listener| listener.set_nonblocking(true));
    others.extend(std::iter::from_fn(|| accepted(listener)));
    others.iter().for_each(send_byte);
    Outcome::Reported
}

fn accepted(listener: Option<&UnixListener>) -> Option<UnixStream> {
    Some(listener?.accept().ok()?.0)
}

/// The side of a rank that has a reporter.
fn follow(over: &UnixStream, end: Instant, reporter: &UnixStream) -> PeerEvent {
    for end in [end, Instant::now().max(end) + ANSWER] {
        let ready = ready(&[over.as_raw_fd(), reporter.as_raw_fd()], end);
        match ready[..] {
            [true, _] => return PeerEvent::Is(Outcome::Met),
            [_, true] if receive_byte(reporter) => return PeerEvent::Is(Outcome::Reported),
            [_, true] => return PeerEvent::Gone,
            _ => send_byte(reporter),
        }
    }
    // The reporter's process is stopped.
    PeerEvent::Is(Outcome::Reported)
}

/// Sends a byte: a request to the reporter, or its answer to the others. Errors mean that the peer has ended.
fn send_byte(other: &UnixStream) {
    // SAFETY: the byte lives through the call, and MSG_NOSIGNAL suppresses SIGPIPE.
    unsafe { libc::send(other.as_raw_fd(), [1u8].as_ptr().cast(), 1, libc::MSG_NOSIGNAL) };
}

/// Receives a byte. False if the peer has ended.
fn receive_byte(mut other: &UnixStream) -> bool {
    other.read(&mut [0]).is_ok_and(|count| count == 1)
}

/// Which of these files are readable or closed; none if the time has expired.
fn ready(files: &[RawFd], end: Instant) -> Vec<bool> {
    let mut polled: Vec<libc::pollfd> =
        files.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // Rounded up, to avoid repeated calls in the last millisecond.
        let milliseconds = left.as_nanos().div_ceil(1_000_000).min(1 << 30) as i32;
        // SAFETY: `polled` has `polled.len()` entries and lives through the call.
        let count = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
        if count > 0 || left.is_zero() {
            return polled.iter().map(|file| file.revents != 0).collect();
        }
    }
}

/// Waits until the launcher has read this process's error output: what is left in the pipe may be lost with the
/// process.
fn wait_until_read() {
    let end = Instant::now() + ANSWER;
    while unread() > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Unread bytes of the error output, if that is a pipe.
fn unread() -> i32 {
    let (mut count, mut status) = (0, std::mem::MaybeUninit::<libc::stat>::uninit());
    // SAFETY: both calls write to locals of their types; the status is read only if `fstat` succeeded.
    unsafe {
        let is_pipe = libc::fstat(libc::STDERR_FILENO, status.as_mut_ptr()) == 0
            && status.assume_init().st_mode & libc::S_IFMT == libc::S_IFIFO;
        if is_pipe && libc::ioctl(libc::STDERR_FILENO, libc::FIONREAD, &raw mut count) == 0 { count } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{JoinHandle, spawn};

    const FOREVER: Duration = Duration::from_secs(600);

    static REPORTED: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

    fn address(name: &str) -> SocketAddr {
        SocketAddr::from_abstract_name(format!("bh-test-{name}-{}", std::process::id())).unwrap()
    }

    /// A waiting rank: the stream that ends its wait, and its outcome with the test's count of reports.
    fn rank(test: usize, limit: Duration, address: Option<SocketAddr>) -> (UnixStream, JoinHandle<(Outcome, usize)>) {
        let (mine, over) = UnixStream::pair().unwrap();
        let print = move || _ = REPORTED[test].fetch_add(1, Ordering::SeqCst);
        let run = move || (wait(&over, limit, address.as_ref(), print), REPORTED[test].load(Ordering::SeqCst));
        (mine, spawn(run))
    }

    fn connect(address: &SocketAddr) -> UnixStream {
        std::iter::repeat_with(|| UnixStream::connect_addr(address)).find_map(Result::ok).unwrap()
    }

    #[test]
    fn the_reporter_reports_once_on_request_and_answers_all() {
        let address = address("reporter");
        let (_over, reporter) = rank(0, FOREVER, Some(address.clone()));
        let others = [(); 3].map(|()| connect(&address));
        drop(connect(&address));
        send_byte(&others[1]);
        for other in &others {
            assert!(receive_byte(other));
            assert_eq!(REPORTED[0].load(Ordering::SeqCst), 1);
        }
        assert_eq!(reporter.join().unwrap(), (Outcome::Reported, 1));
    }

    #[test]
    fn others_ask_the_reporter_and_end_after_its_report() {
        for limit in [Duration::ZERO, FOREVER] {
            let address = address(&format!("others-{}", limit.as_secs()));
            let listener = UnixListener::bind_addr(&address).unwrap();
            let (_over, other) = rank(1, limit, Some(address));
            let connection = listener.accept().unwrap().0;
            assert!(!limit.is_zero() || receive_byte(&connection));
            assert!(!other.is_finished());
            send_byte(&connection);
            assert_eq!(other.join().unwrap(), (Outcome::Reported, 0));
        }
    }

    #[test]
    fn another_rank_reports_when_the_reporter_has_ended() {
        let address = address("gone");
        let listener = UnixListener::bind_addr(&address).unwrap();
        let (_over, other) = rank(2, Duration::ZERO, Some(address));
        drop(listener.accept().unwrap());
        drop(listener);
        assert_eq!(other.join().unwrap(), (Outcome::Reported, 1));
        let (_over, alone) = rank(2, Duration::ZERO, None);
        assert_eq!(alone.join().unwrap(), (Outcome::Reported, 2));
    }

    #[test]
    fn ranks_that_met_print_nothing() {
        let address = address("met");
        let all = [(); 3].map(|()| rank(3, FOREVER, Some(address.clone())));
        for (over, rank) in all {
            drop(over);
            assert_eq!(rank.join().unwrap(), (Outcome::Met, 0));
        }
    }
}
