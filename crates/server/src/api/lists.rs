//! Paging of lists by time.

use jiff::Timestamp;

/// Truncates a list. Items of the same moment as the last one stay, so that the next page from that moment misses none.
pub(super) fn cut<T>(list: &mut Vec<T>, limit: usize, moment: impl Fn(&T) -> Timestamp) {
    let last = limit.checked_sub(1).and_then(|last| list.get(last)).map(&moment);
    let same = list.iter().skip(limit).take_while(|one| Some(moment(one)) == last).count();
    list.truncate(limit + same);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_never_ends_between_two_of_the_same_moment() {
        let cut = |limit| {
            let mut list: Vec<Timestamp> = [1, 2, 2, 2, 3].map(|n| Timestamp::from_second(n).unwrap()).into();
            super::cut(&mut list, limit, |moment| *moment);
            list.len()
        };
        assert_eq!([0, 1, 2, 3, 4, 5, 9].map(cut), [0, 1, 4, 4, 4, 5, 5]);
    }
}
