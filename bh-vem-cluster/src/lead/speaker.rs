//! One of the ranks of a host speaks for all that wait there: the first to come, to which the others connect. A rank whose
//! patience ends first asks it to speak. Nobody ends before the message is out, since the launcher ends the job with the first
//! rank that fails.

use std::io::{ErrorKind, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// The longest that a rank waits for the speaker's answer, or for the launcher to read the message.
const ANSWER: Duration = Duration::from_secs(60);

/// What became of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The ranks have met.
    Met,
    /// They have not, and a message says so.
    Said,
}

/// What a rank does beside the speaker.
enum Heard {
    Is(Outcome),
    /// The speaker has gone without a message.
    Gone,
}

/// Waits until `over` ends, for so long at most; then one of the ranks at this address calls `say`.
pub fn wait(over: &UnixStream, limit: Duration, address: Option<&SocketAddr>, say: impl Fn()) -> Outcome {
    let end = Instant::now() + limit;
    loop {
        let listener = match address.map(UnixListener::bind_addr) {
            Some(Err(error)) if error.kind() == ErrorKind::AddrInUse => None,
            Some(Ok(listener)) => Some(Some(listener)),
            // Without an address each rank speaks for itself.
            _ => Some(None),
        };
        if let Some(listener) = listener {
            return speak(over, end, listener.as_ref(), say);
        }
        let Some(Ok(speaker)) = address.map(UnixStream::connect_addr) else {
            // It has gone just now.
            std::thread::yield_now();
            continue;
        };
        match listen(over, end, &speaker) {
            Heard::Is(outcome) => return outcome,
            Heard::Gone => {}
        }
    }
}

/// The speaker's part.
fn speak(over: &UnixStream, end: Instant, listener: Option<&UnixListener>, say: impl Fn()) -> Outcome {
    let mut others: Vec<UnixStream> = Vec::new();
    loop {
        let files = [over.as_raw_fd(), listener.map_or(-1, AsRawFd::as_raw_fd)];
        let files: Vec<RawFd> = files.into_iter().chain(others.iter().map(AsRawFd::as_raw_fd)).collect();
        let ready = ready(&files, end);
        let mut asked = !ready.contains(&true);
        if ready[0] {
            return Outcome::Met;
        }
        let mut tells = ready[2..].iter();
        others.retain_mut(|other| {
            !tells.next().is_some_and(|&tells| tells) || {
                let is_there = word(other);
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
    say();
    let_it_be_read();
    // Those that connected meanwhile, too.
    let _ = listener.map(|listener| listener.set_nonblocking(true));
    others.extend(std::iter::from_fn(|| accepted(listener)));
    others.iter().for_each(tell);
    Outcome::Said
}

fn accepted(listener: Option<&UnixListener>) -> Option<UnixStream> {
    Some(listener?.accept().ok()?.0)
}

/// The part of a rank that has a speaker.
fn listen(over: &UnixStream, end: Instant, speaker: &UnixStream) -> Heard {
    for end in [end, Instant::now().max(end) + ANSWER] {
        let ready = ready(&[over.as_raw_fd(), speaker.as_raw_fd()], end);
        match ready[..] {
            [true, _] => return Heard::Is(Outcome::Met),
            [_, true] if word(speaker) => return Heard::Is(Outcome::Said),
            [_, true] => return Heard::Gone,
            _ => tell(speaker),
        }
    }
    // Its process stands still.
    Heard::Is(Outcome::Said)
}

/// Says a word: "speak" to the speaker, "it is said" to the others. Those that have gone need none.
fn tell(other: &UnixStream) {
    // SAFETY: the byte lives through the call, which raises no signal.
    unsafe { libc::send(other.as_raw_fd(), [1u8].as_ptr().cast(), 1, libc::MSG_NOSIGNAL) };
}

/// Reads a word. False if the other has gone.
fn word(mut other: &UnixStream) -> bool {
    other.read(&mut [0]).is_ok_and(|count| count == 1)
}

/// Which of these files have something to read, or have ended; none if the time is up.
fn ready(files: &[RawFd], end: Instant) -> Vec<bool> {
    let mut polled: Vec<libc::pollfd> =
        files.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // Rounded up, so that it is not called again and again in the last millisecond.
        let milliseconds = left.as_nanos().div_ceil(1_000_000).min(1 << 30) as i32;
        // SAFETY: as many entries as are given, which live through the call.
        let count = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
        if count > 0 || left.is_zero() {
            return polled.iter().map(|file| file.revents != 0).collect();
        }
    }
}

/// Waits until the launcher has read what this process printed to its pipe: what is left there may be lost with the process.
fn let_it_be_read() {
    let end = Instant::now() + ANSWER;
    while unread() > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Bytes of the error output that wait in a pipe.
fn unread() -> i32 {
    let (mut count, mut status) = (0, std::mem::MaybeUninit::<libc::stat>::uninit());
    // SAFETY: room for what the calls write; the status is read only if it was written.
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

    static SAID: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

    fn address(name: &str) -> SocketAddr {
        SocketAddr::from_abstract_name(format!("bh-test-{name}-{}", std::process::id())).unwrap()
    }

    /// A rank that waits, what ends its wait, and how often it spoke, of this test's counter.
    fn rank(test: usize, limit: Duration, address: Option<SocketAddr>) -> (UnixStream, JoinHandle<(Outcome, usize)>) {
        let (mine, over) = UnixStream::pair().unwrap();
        let say = move || _ = SAID[test].fetch_add(1, Ordering::SeqCst);
        let run = move || (wait(&over, limit, address.as_ref(), say), SAID[test].load(Ordering::SeqCst));
        (mine, spawn(run))
    }

    fn connect(address: &SocketAddr) -> UnixStream {
        std::iter::repeat_with(|| UnixStream::connect_addr(address)).find_map(Result::ok).unwrap()
    }

    #[test]
    fn the_speaker_speaks_once_when_it_is_asked_and_tells_all() {
        let address = address("speaker");
        let (_over, speaker) = rank(0, FOREVER, Some(address.clone()));
        let others = [(); 3].map(|()| connect(&address));
        drop(connect(&address));
        tell(&others[1]);
        for other in &others {
            assert!(word(other));
            assert_eq!(SAID[0].load(Ordering::SeqCst), 1);
        }
        assert_eq!(speaker.join().unwrap(), (Outcome::Said, 1));
    }

    #[test]
    fn others_ask_the_speaker_and_end_after_it_has_spoken() {
        for limit in [Duration::ZERO, FOREVER] {
            let address = address(&format!("others-{}", limit.as_secs()));
            let listener = UnixListener::bind_addr(&address).unwrap();
            let (_over, other) = rank(1, limit, Some(address));
            let connection = listener.accept().unwrap().0;
            assert!(!limit.is_zero() || word(&connection));
            assert!(!other.is_finished());
            tell(&connection);
            assert_eq!(other.join().unwrap(), (Outcome::Said, 0));
        }
    }

    #[test]
    fn another_speaks_when_the_speaker_has_gone() {
        let address = address("gone");
        let listener = UnixListener::bind_addr(&address).unwrap();
        let (_over, other) = rank(2, Duration::ZERO, Some(address));
        drop(listener.accept().unwrap());
        drop(listener);
        assert_eq!(other.join().unwrap(), (Outcome::Said, 1));
        let (_over, alone) = rank(2, Duration::ZERO, None);
        assert_eq!(alone.join().unwrap(), (Outcome::Said, 2));
    }

    #[test]
    fn ranks_that_met_say_nothing() {
        let address = address("met");
        let all = [(); 3].map(|()| rank(3, FOREVER, Some(address.clone())));
        for (over, rank) in all {
            drop(over);
            assert_eq!(rank.join().unwrap(), (Outcome::Met, 0));
        }
    }
}
