use super::*;

#[test]
fn every_embedded_profile_parses() {
    for id in Profile::ids() {
        let profile = Profile::by_id(id).unwrap();
        assert_eq!(profile.id, id);
    }
}

#[test]
fn hopper_bf16_is_one_block_of_sixteen() {
    let profile = Profile::by_id("h200").unwrap();
    let bf16 = profile.mma("bf16").unwrap();
    assert_eq!((bf16.n_fma, bf16.neab, bf16.min_alignment_exponent), (16, 2, -133));
}

#[test]
fn profiles_of_one_architecture_agree() {
    let (h100, h200) = (Profile::by_id("h100").unwrap(), Profile::by_id("h200").unwrap());
    assert_eq!(h100.mma, h200.mma);
    assert_eq!(h100.emulated, h200.emulated);
    assert_ne!(h100.digest, h200.digest);
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let message = Profile::by_id("h300").unwrap_err().to_string();
    assert_eq!(
        message,
        "no profile is called h300; there are v100, t4, a100, l40s, h100, h200, b200, rtx-pro-6000"
    );
}

#[test]
fn refuses_what_it_does_not_understand() {
    let good = FILES[5].1;
    assert!(Profile::parse("h200", good).is_ok());
    // (from, to, part of the message, reason)
    let cases = [
        ("id = \"h200\"", "id = \"h100\"", "expected h200", "the name is the file's"),
        ("neab = 2", "neab = 2\nneb = 3", "unknown field `neb`", "misspelt keys are refused"),
        ("neab = 2", "neab = 40", "neab 40 is outside", "the sum would leave i64"),
        ("n_fma = 16", "n_fma = 0", "n_fma is 0", "no product"),
        ("n_fma = 16", "n_fma = 64", "n_fma is 64", "more than a block holds"),
        ("k = [8, 16]", "k = [8, 24]", "k 24 is not a whole number", "a broken block"),
        ("toward_zero_f32", "nearest_f16", "d is F32", "output format contradicts"),
        ("toward_zero_f32", "up", "unknown variant `up`", "unknown rounding"),
        ("through = \"f16\"", "through = \"f17\"", "no mma entry f17", "dangling reference"),
    ];
    for (from, to, part, reason) in cases {
        assert!(good.contains(from), "{from} is in the file");
        let message = Profile::parse("h200", &good.replacen(from, to, 1)).unwrap_err();
        assert!(message.to_string().contains(part), "{reason}: {message}");
    }
}
