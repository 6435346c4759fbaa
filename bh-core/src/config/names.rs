//! Suggests the nearest valid name for a misspelt one.

/// The most valid names in a message.
const LISTED: usize = 50;
/// The most letters of a name that is compared with others; longer names are not misspelt ones.
const LONGEST: usize = 64;

/// The number of letters to insert, drop, replace or swap with their neighbour to turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for (i, &from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &to) in b.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(from != to)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from == b[j - 1] && a[i - 1] == to {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The nearest of the valid names, if it is near enough.
pub(super) fn nearest<'a>(name: &str, valid: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let short = |name: &str| name.len() <= 4 * LONGEST && name.chars().count() <= LONGEST;
    if !short(name) {
        return None;
    }
    let limit = (name.chars().count() / 3).max(2);
    let (distance, nearest) = valid.filter(|other| short(other)).map(|other| (distance(name, other), other)).min()?;
    (distance <= limit).then_some(nearest)
}

/// The end of an error message about an unknown name: suggests the nearest valid name, or lists all of them.
pub(super) fn hint<'a>(name: &str, what: &str, valid: impl Iterator<Item = &'a str>) -> String {
    let mut valid: Vec<&str> = valid.collect();
    valid.sort_unstable();
    match nearest(name, valid.iter().copied()) {
        Some(nearest) => format!("; did you mean '{nearest}'?"),
        None if valid.is_empty() => String::new(),
        None => {
            let more = if valid.len() > LISTED { ", …" } else { "" };
            valid.truncate(LISTED);
            format!("; {what}: {}{more}", valid.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        let cases = [("", "", 0), ("a", "", 1), ("threads", "thraeds", 1), ("kitten", "sitting", 3), ("ab", "ba", 1)];
        for (a, b, expected) in cases {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn hints_name_the_nearest_or_all() {
        let valid = ["threads", "affinity"];
        assert_eq!(hint("thread", "keys", valid.into_iter()), "; did you mean 'threads'?");
        assert_eq!(hint("color", "keys", valid.into_iter()), "; keys: affinity, threads");
        assert_eq!(hint("color", "keys", [].into_iter()), "");
    }
}
