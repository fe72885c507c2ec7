//! Whether the chosen tokens and the end of the text follow the stated rule.

use crate::engine::generate::StopRule;
use crate::model::Content;
use crate::num::{Bf16, Tensor};
use crate::recipe::argmax::argmax_row;
use crate::transcript::statement::{FinishReason, Statement};
use crate::transcript::{Transcript, capture};

/// The stated rule is the one we know, with the model's own stop ids.
pub(super) fn check_rule(statement: &Statement, model: &Content) -> Result<(), String> {
    let sampling = &statement.sampling;
    if sampling.rule != capture::GREEDY {
        return Err(format!("sampling rule {:?} is not known", sampling.rule));
    }
    let mut ids = model.generation().eos_token_id.clone();
    ids.sort_unstable();
    ids.dedup();
    if sampling.stop_ids != ids {
        return Err(format!(
            "stop ids are {:?} in the transcript, {ids:?} in the model",
            sampling.stop_ids
        ));
    }
    if sampling.recorded != model.generation().recorded {
        return Err("the recorded generation config is not the model's".into());
    }
    let rule = StopRule {
        max_new_tokens: usize::try_from(sampling.max_new_tokens).unwrap_or(usize::MAX),
        stop_ids: ids,
    };
    if rule.max_new_tokens == 0 {
        return Err("at most 0 new tokens: nothing could have been generated".into());
    }
    let limit = model.config().max_position_embeddings;
    let tokens = statement.tokens_in.len().saturating_add(rule.max_new_tokens);
    if tokens > limit {
        // A run would have been refused.
        return Err(format!(
            "{} prompt tokens and at most {} new ones do not fit the model's context of {limit}",
            statement.tokens_in.len(),
            sampling.max_new_tokens
        ));
    }
    let count = statement.tokens_out.len();
    for (index, &token) in statement.tokens_out.iter().enumerate() {
        let ended = rule.ends(index + 1, token).map(capture::finish_reason);
        let due = (index + 1 == count).then_some(statement.finish);
        if ended != due {
            let word = |end: Option<FinishReason>| end.map_or("goes on", FinishReason::word);
            return Err(format!(
                "after {} tokens the rule says {:?}, the transcript {:?}",
                index + 1,
                word(ended),
                word(due)
            ));
        }
    }
    Ok(())
}

/// Where the logits are recorded, a wrong choice shows before anything is executed.
pub(super) fn check_choices(transcript: &Transcript) -> Result<(), String> {
    for (index, &token) in transcript.statement().tokens_out.iter().enumerate() {
        let Some(row) = transcript.logits_row(index as u64) else { return Ok(()) };
        let largest = argmax_row(&Bf16::from_le_bytes(&row)).map_err(|error| error.to_string())?;
        if largest != token as usize {
            return Err(format!(
                "token {index} is {token}, but the largest recorded logit is {largest}"
            ));
        }
    }
    Ok(())
}

pub(super) fn check_chosen(statement: &Statement, chosen: Option<&Tensor>) -> Result<(), String> {
    let chosen = chosen.and_then(Tensor::as_u32).unwrap_or_default();
    if chosen.len() != statement.tokens_out.len() {
        return Err(format!(
            "{} tokens were chosen, the transcript has {}",
            chosen.len(),
            statement.tokens_out.len()
        ));
    }
    let pairs = chosen.iter().zip(&statement.tokens_out);
    match pairs.enumerate().find(|(_, (computed, stated))| computed != stated) {
        None => Ok(()),
        Some((index, (computed, stated))) => Err(format!(
            "token {index} is {stated} in the transcript, but the largest logit is {computed}"
        )),
    }
}
