//! One value from one thread to another.

use crate::executor::handoff::handoff;

#[test]
fn values_arrive_and_absences_too() {
    let (giver, taker) = handoff();
    let thread = std::thread::spawn(move || taker.take());
    giver.give(5);
    assert_eq!(thread.join().unwrap(), Some(5));
    let (giver, taker) = handoff::<u8>();
    drop(giver);
    assert_eq!(taker.take(), None);
}
