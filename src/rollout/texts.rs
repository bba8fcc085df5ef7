//! Texts and patterns that all rollouts of a campaign share, whatever their scaffold.

use super::forensics::Forensics;
use crate::agent::{ArmTexts, PlainSummary, PromptsError};
use crate::assets::Assets;

/// The texts of all arms and of summaries, and the patterns that find exploits.
#[derive(Clone, Debug)]
pub struct Texts {
    pub(super) arms: ArmTexts,
    pub(super) summary: PlainSummary,
    forensics: Forensics,
}

impl Texts {
    /// Loads texts and patterns.
    pub fn load(assets: &Assets, forensics: Forensics) -> Result<Self, PromptsError> {
        Ok(Self { arms: ArmTexts::load(assets)?, summary: PlainSummary::load(assets)?, forensics })
    }

    /// The patterns that commands are matched against.
    pub fn forensics(&self) -> &Forensics {
        &self.forensics
    }
}
