//! The loops over a segment's vectors.

use crate::kernel::{At, Kernel};
use crate::schedule::Loop;
use crate::writer::{Value, vector};

/// Bytes of a line of the caches.
pub(crate) const LINE: usize = 64;
/// Rows of fewer elements begin where they begin.
const LONG: usize = 256;
/// The same where several arrays are written past the caches, in bytes of one: the part of a vector that is done first
/// is less than what putting vectors together costs there.
const LONG_STREAM: usize = 512;

impl Kernel<'_> {
    /// The loops of a segment over a block of `length` elements that begins at element `base` of the row.
    pub(crate) fn segment(&mut self, segment: usize, length: &str, base: Option<&str>) -> Result<(), String> {
        let mut from = "0".to_owned();
        let loops = if self.rows.count > 1 { &self.plan.loops_of_many } else { &self.plan.loops };
        if let &[whole, masked] = loops.as_slice() {
            if let Some(guide) = self.plan.aligned {
                let long = self.writer.value(format_args!("icmp sge i64 {length}, {LONG}"));
                return self.aligned(segment, (whole, masked), length, base, (guide, Some(long)));
            }
            if self.has_streams_alike() {
                return self.streams_alike(segment, (whole, masked), length, base);
            }
        }
        for each in loops {
            from = self.one_loop(segment, *each, length, base, &from)?;
        }
        Ok(())
    }

    /// Loops that write several arrays past the caches: where these lie alike and rows are long, vectors that begin where
    /// lines of all of them do; else vectors that are put together from two.
    fn streams_alike(
        &mut self,
        segment: usize,
        (whole, masked): (Loop, Loop),
        length: &str,
        base: Option<&str>,
    ) -> Result<(), String> {
        let size = self.request.slots[usize::from(self.plan.alike[0])].dtype.size();
        let long = self.writer.value(format_args!("icmp sge i64 {length}, {}", LONG_STREAM / size));
        let alike = self.writer.value(format_args!("and i1 {long}, %alike"));
        let labels = ["alike", "apart", "streamed"].map(|purpose| self.writer.label(purpose));
        let [is_alike, is_apart, end] = &labels;
        self.writer.line(format_args!("br i1 {alike}, label %{is_alike}, label %{is_apart}"));
        self.writer.begin(is_alike);
        self.in_lines = true;
        self.aligned(segment, (whole, masked), length, base, (self.plan.alike[0], None))?;
        self.in_lines = false;
        self.writer.line(format_args!("br label %{end}"));
        self.writer.begin(is_apart);
        let from = self.one_loop(segment, whole, length, base, "0")?;
        self.one_loop(segment, masked, length, base, &from)?;
        self.writer.line(format_args!("br label %{end}"));
        self.writer.begin(end);
        Ok(())
    }

    /// The loop over whole vectors, which begins where `guide` does not cross a line of the caches with any, and around it,
    /// twice, the loop over what is left. If a condition is given and not met, it begins where the row does.
    fn aligned(
        &mut self,
        segment: usize,
        (whole, masked): (Loop, Loop),
        length: &str,
        base: Option<&str>,
        (guide, condition): (u16, Option<Value>),
    ) -> Result<(), String> {
        let size = self.request.slots[usize::from(guide)].dtype.size();
        let address = self.unit_address(usize::from(guide), 0, base.unwrap_or("0"), 0);
        let number = self.writer.value(format_args!("ptrtoint ptr {address} to i64"));
        let distance = self.writer.value(format_args!("sub i64 0, {number}"));
        let bytes = self.writer.value(format_args!("and i64 {distance}, {}", LINE - 1));
        let elements = self.writer.value(format_args!("lshr i64 {bytes}, {}", size.trailing_zeros()));
        let head = match condition {
            Some(condition) => self.writer.value(format_args!("select i1 {condition}, i64 {elements}, i64 0")),
            None => elements,
        };
        let (rest, body, end) = (self.writer.label("rest"), self.writer.label("whole"), self.writer.label("done"));
        let before = self.writer.block().to_owned();
        self.writer.line(format_args!("br label %{rest}"));
        self.writer.begin(&rest);
        let (from, to, first) = (format!("%from.{rest}"), format!("%to.{rest}"), format!("%first.{rest}"));
        let whole_end = format!("%end.{rest}");
        self.writer.line(format_args!("{from} = phi i64 [ 0, %{before} ], [ {whole_end}, %back.{rest} ]"));
        self.writer.line(format_args!("{to} = phi i64 [ {head}, %{before} ], [ {length}, %back.{rest} ]"));
        self.writer.line(format_args!("{first} = phi i1 [ true, %{before} ], [ false, %back.{rest} ]"));
        self.one_loop(segment, masked, &to, base, &from)?;
        self.writer.line(format_args!("br i1 {first}, label %{body}, label %{end}"));
        self.writer.begin(&body);
        let reached = self.one_loop(segment, whole, length, base, &head.to_string())?;
        self.writer.line(format_args!("br label %back.{rest}"));
        self.writer.begin(&format!("back.{rest}"));
        self.writer.line(format_args!("{whole_end} = add i64 {reached}, 0"));
        self.writer.line(format_args!("br label %{rest}"));
        self.writer.begin(&end);
        Ok(())
    }

    /// One loop, from element `from` of the block on; gives the element where it ends.
    fn one_loop(
        &mut self,
        segment: usize,
        each: Loop,
        length: &str,
        base: Option<&str>,
        from: &str,
    ) -> Result<String, String> {
        let group = i64::from(each.width * each.unroll);
        let end = if each.masked || group == 1 {
            length.to_owned()
        } else {
            let mut left = self.writer.value(format_args!("sub i64 {length}, {from}"));
            if self.request.slots.iter().any(|slot| slot.stride.is_sparse()) {
                // They need an element after the last vector.
                let before = self.writer.value(format_args!("sub i64 {left}, 1"));
                let none = self.writer.value(format_args!("icmp eq i64 {left}, 0"));
                left = self.writer.value(format_args!("select i1 {none}, i64 0, i64 {before}"));
            }
            let whole = self.writer.value(format_args!("and i64 {left}, {}", -group));
            self.writer.value(format_args!("add i64 {whole}, {from}")).to_string()
        };
        let some = self.writer.value(format_args!("icmp slt i64 {from}, {end}"));
        let (enter, body, leave, after) = (
            self.writer.label("enter"),
            self.writer.label("loop"),
            self.writer.label("leave"),
            self.writer.label("after"),
        );
        let before = self.writer.block().to_owned();
        self.writer.line(format_args!("br i1 {some}, label %{enter}, label %{after}"));
        self.writer.begin(&enter);
        let last = segment + 1 == self.plan.segments;
        let carries = self.plan.carries;
        let in_registers = group == 32 && (carries || !each.masked) && self.request.folds.has_lanes() && last;
        let folds = if in_registers { self.folds() } else { Vec::new() };
        let rows = self.rows.count;
        let mut starts = Vec::new();
        for row in (0..rows).filter(|_| !carries) {
            for (at, (_, dtype, _)) in folds.iter().enumerate() {
                for vector in 0..each.unroll {
                    let address = self.accumulator(at, row);
                    starts.push(self.load_vector(*dtype, &address, vector * each.width, each.width));
                }
            }
        }
        if carries {
            starts.clone_from(&self.carried);
        }
        self.begin_streams(each, from);
        self.writer.line(format_args!("br label %{body}"));
        self.writer.begin(&body);
        let index = format!("%j.{body}");
        let next = format!("%next.{body}");
        let latch = format!("{body}.end");
        self.writer.line(format_args!("{index} = phi i64 [ {from}, %{enter} ], [ {next}, %{latch} ]"));
        self.sums.clear();
        let mut names = Vec::new();
        let mut begins = starts.iter();
        for row in 0..rows {
            let mut sums = Vec::new();
            for (at, (_, dtype, _)) in folds.iter().enumerate() {
                let kind = vector(*dtype, each.width);
                let mut vectors = Vec::new();
                for (vector, start) in (0..each.unroll).zip(&mut begins) {
                    let name = format!("%sum.{body}.{row}.{at}.{vector}");
                    vectors.push(
                        self.writer.value(format_args!("phi {kind} [ {start}, %{enter} ], [ {name}, %{latch} ]")),
                    );
                    names.push((name, kind.clone()));
                }
                sums.push(vectors);
            }
            self.sums.push(sums);
        }
        let streams = self.enter_streams(&enter, &latch);
        let element = match base {
            Some(base) => self.writer.value(format_args!("add i64 {base}, {index}")).to_string(),
            None => index.clone(),
        };
        let limit = each.masked.then(|| {
            let left = self.writer.value(format_args!("sub i64 {length}, {index}"));
            let short = self.writer.value(format_args!("trunc i64 {left} to i32"));
            self.writer.broadcast("i32", each.width, short)
        });
        for vector in 0..each.unroll {
            let register = in_registers.then_some(usize::from(vector));
            let (element, index, offset) = (element.clone(), index.clone(), vector * each.width);
            let mask = limit.map(|limit| {
                let lanes: Vec<String> = (offset..offset + each.width).map(|lane| format!("i32 {lane}")).collect();
                self.writer.value(format_args!("icmp ugt <{} x i32> {limit}, <{}>", each.width, lanes.join(", ")))
            });
            self.vectors(&At { element, index, offset, width: each.width, mask, segment, register, row: 0 })?;
        }
        self.writer.line(format_args!("br label %{latch}"));
        self.writer.begin(&latch);
        self.writer.line(format_args!("{next} = add i64 {index}, {group}"));
        for ((name, kind), sum) in names.iter().zip(self.sums.iter().flatten().flatten()) {
            self.writer.line(format_args!("{name} = freeze {kind} {sum}"));
        }
        self.continue_streams(&streams);
        let more = if carries && each.masked {
            // It is what remains of one group, so what is masked can be found before all rows.
            "false".to_owned()
        } else {
            self.writer.value(format_args!("icmp slt i64 {next}, {end}")).to_string()
        };
        self.writer.line(format_args!("br i1 {more}, label %{body}, label %{leave}"));
        self.writer.begin(&leave);
        for row in (0..rows).filter(|_| !carries) {
            for (at, (_, dtype, _)) in folds.iter().enumerate() {
                for vector in 0..each.unroll {
                    let sum = self.sums[usize::from(row)][at][usize::from(vector)];
                    let address = self.accumulator(at, row);
                    self.store_vector(*dtype, &address, vector * each.width, each.width, sum);
                }
            }
        }
        self.end_streams(&end);
        let from = self.writer.block().to_owned();
        self.writer.line(format_args!("br label %{after}"));
        self.writer.begin(&after);
        if carries {
            let sums: Vec<Value> = self.sums.iter().flatten().flatten().copied().collect();
            self.carried = (starts.iter().zip(sums).zip(&names))
                .map(|((start, sum), (_, kind))| {
                    self.writer.value(format_args!("phi {kind} [ {start}, %{before} ], [ {sum}, %{from} ]"))
                })
                .collect();
        }
        Ok(end)
    }
}
