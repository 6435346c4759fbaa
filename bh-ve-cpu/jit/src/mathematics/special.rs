//! Values that are made in one way for most vectors, and in another one where a lane is special.

use crate::builder::{Builder, Mostly, Value};

/// A value; `exact` computes it if a lane that counts is special.
pub(crate) fn unless_special<'c>(
    b: &Builder<'c>,
    value: Value<'c>,
    special: Value<'c>,
    mask: Option<Value<'c>>,
    exact: impl FnOnce() -> Value<'c>,
) -> Value<'c> {
    let any = is_any(b, special, mask);
    let ([slow, join], fast) = (b.blocks(["slow", "join"]), b.current());
    b.branch_mostly(Mostly::Passed, any, (slow, join));
    b.begin(slow);
    let exact = exact();
    b.jump(join);
    b.begin(join);
    b.either((value, fast), (exact, slow))
}

/// The value of `common`, or that of `exact` if a lane that counts is special.
pub(crate) fn either<'c>(
    b: &Builder<'c>,
    special: Value<'c>,
    mask: Option<Value<'c>>,
    common: impl FnOnce() -> Value<'c>,
    exact: impl FnOnce() -> Value<'c>,
) -> Value<'c> {
    let any = is_any(b, special, mask);
    let [fast, slow, join] = b.blocks(["fast", "slow", "join"]);
    b.branch_mostly(Mostly::Passed, any, (slow, fast));
    b.begin(fast);
    let common = common();
    b.jump(join);
    b.begin(slow);
    let exact = exact();
    b.jump(join);
    b.begin(join);
    b.either((common, fast), (exact, slow))
}

/// Is any lane that counts among these?
fn is_any<'c>(b: &Builder<'c>, lanes: Value<'c>, mask: Option<Value<'c>>) -> Value<'c> {
    b.any(mask.map_or(lanes, |mask| b.and(lanes, mask)))
}
