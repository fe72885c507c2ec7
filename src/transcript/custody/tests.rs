//! Logs that were changed by somebody without a key, and by one with it.

use super::*;

fn key(seed: u8) -> PrivateKey {
    PrivateKey::from_seed(&[seed; 32])
}

/// An entry that may follow `log`.
fn next(log: &Log, time: u64) -> Entry {
    Entry {
        version: FormVersion,
        number: log.entries.len() as u64 + 1,
        previous: log.head(),
        time,
        action: Action::Received,
        transcript: Digest([1; 32]),
        verdict: None,
        report: None,
        note: None,
        tool: Tool { name: "attest".into(), version: "0.1.0".into() },
        tables: Digest([2; 32]),
    }
}

/// Entries of one log, one after the other, signed by `key`.
fn chain(seed: u8, times: &[u64]) -> Vec<Vec<u8>> {
    let mut items: Vec<Vec<u8>> = Vec::new();
    for &time in times {
        let log = Log::read(&items.concat()).unwrap();
        items.push(next(&log, time).seal(&key(seed)));
    }
    items
}

fn refusal(items: &[&[u8]]) -> String {
    Log::read(&items.concat()).unwrap_err().to_string()
}

#[test]
fn a_chain_is_read_and_its_head_is_the_last_entry() {
    let items = chain(1, &[10, 10, 11]);
    let log = Log::read(&items.concat()).unwrap();
    assert_eq!(log.entries().len(), 3);
    assert_eq!(log.head(), Some(sha256(&[&items[2]])));
    assert_eq!(log.number_of(sha256(&[&items[0]])), Some(1));
    assert_eq!(log.number_of(Digest([0; 32])), None);
    assert_eq!(Log::read(&[]).unwrap().head(), None);
}

#[test]
fn removing_swapping_repeating_and_splicing_break_the_chain() {
    let items = chain(1, &[10, 11, 12, 13]);
    let other = chain(1, &[10, 12, 12, 13]);
    let [a, b, c, d] = [0, 1, 2, 3].map(|at| &items[at][..]);
    // (entries, words of the refusal, reason)
    let cases: [(&[&[u8]], &str, &str); 7] = [
        (&[b, c, d], "byte 0: entry 1 is due, found entry 2", "the first is gone"),
        (&[a, c, d], "entry 2 is due, found entry 3", "one in the middle is gone"),
        (&[a, c, b, d], "entry 2 is due, found entry 3", "two are swapped"),
        (&[a, b, b, c], "entry 3 is due, found entry 2", "one is there twice"),
        (&[a, b, &other[2], d], "entry 3 follows", "one of another log of the same signer"),
        (&[&other[0], &other[1], c, d], "entry 3 follows", "the beginning of another log"),
        (&[a, b, &c[..c.len() - 1]], "entry 3, which starts at byte", "the last one is cut"),
    ];
    for (entries, words, reason) in cases {
        let refusal = refusal(entries);
        assert!(refusal.contains(words), "{reason}: {refusal}");
    }
    // Not seen without an earlier head: the tail is gone.
    let short = Log::read(&[a, b].concat()).unwrap();
    let head = Log::read(&items.concat()).unwrap().head().unwrap();
    assert_eq!(short.number_of(head), None);
}

#[test]
fn every_flipped_bit_of_an_entry_before_the_last_breaks_the_log() {
    let items = chain(1, &[10, 11]);
    let bytes = items.concat();
    for bit in 0..items[0].len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Log::read(&flipped).is_err(), "bit {bit}");
    }
    // Of the last entry, the signature alone is left to find it.
    for bit in items[0].len() * 8..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let Ok(log) = Log::read(&flipped) else { continue };
        let last = &log.entries()[1].envelope;
        let named = last.key_id == key(1).public().id();
        assert!(!named || !last.is_signed_by(&key(1).public()), "bit {bit}");
    }
    for length in items[0].len() + 1..bytes.len() {
        let refused = Log::read(&bytes[..length]).unwrap_err().to_string();
        let words = format!("entry 2, which starts at byte {}: byte", items[0].len());
        assert!(refused.contains(&words), "{length}: {refused}");
    }
}

#[test]
fn an_entry_that_contradicts_itself_or_the_clock_is_refused_though_signed() {
    let first = chain(1, &[10]);
    let log = Log::read(&first[0]).unwrap();
    let good = next(&log, 10);
    let long = Some("n".repeat(MAX_NOTE_LEN_BYTES + 1));
    let cases = [
        (Entry { time: 9, ..good.clone() }, "is of Unix time 9, the entry before it of 10"),
        (Entry { number: 3, ..good.clone() }, "entry 2 is due, found entry 3"),
        (Entry { previous: None, ..good.clone() }, "entry 2 follows nothing"),
        (Entry { report: Some(Digest([0; 32])), ..good.clone() }, "come together"),
        (Entry { verdict: Some(StatedVerdict::Verified), ..good.clone() }, "come together"),
        (Entry { action: Action::Verified, ..good.clone() }, "need a report"),
        (Entry { action: Action::Note, ..good.clone() }, "a note needs its text"),
        (Entry { note: Some(String::new()), ..good.clone() }, "the note is empty"),
        (Entry { note: long, ..good.clone() }, "longer than 4096 bytes"),
    ];
    for (entry, words) in cases {
        let refusal = refusal(&[&first[0], &entry.seal(&key(1))]);
        assert!(refusal.contains(words), "{words}: {refusal}");
    }
    let full = Entry {
        action: Action::Countersigned,
        verdict: Some(StatedVerdict::Partial),
        report: Some(Digest([3; 32])),
        note: Some("n".repeat(MAX_NOTE_LEN_BYTES)),
        ..good
    };
    Log::read(&[&first[0][..], &full.seal(&key(2))].concat()).unwrap();
}
