//! The prompts that ask the model for a summary of the conversation.

use super::terminus;
use crate::assets::Assets;
use crate::prompts::{PromptSet, PromptsError};

/// Folder of the texts for scaffolds without texts of their own.
const FOLDER: &str = "summary";

/// The texts for scaffolds without texts of their own, from `templates/prompts/summary/`.
#[derive(Clone, Debug)]
pub struct PlainSummary(pub(super) PromptSet);

impl PlainSummary {
    /// Loads the texts.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        PromptSet::load(assets, FOLDER, &["ask.md.j2", "short.md.j2", "handoff.md.j2"]).map(Self)
    }

    /// Hash over all texts.
    pub fn digest(&self) -> String {
        self.0.digest()
    }
}

/// The texts that ask for a summary.
#[derive(Clone, Copy, Debug)]
pub enum SummaryTexts<'a> {
    Terminus(&'a terminus::Texts),
    Plain(&'a PlainSummary),
}
