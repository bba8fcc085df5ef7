//! The scaffolds of scripted experts, and how often each is used.

use std::str::FromStr;

use rand::rngs::ChaCha20Rng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;

use super::super::bash::BashTool;
use super::super::bash_block::BashBlock;
use super::super::scaffold::Scaffold;
use super::super::terminal::Wake;
use super::super::terminus::Format;
use super::super::terminus_scaffold::Terminus;
use super::MessageFormat;
use crate::assets::Assets;
use crate::model::Seed;
use crate::prompts::PromptsError;

/// The loaded scaffolds of scripted experts.
#[derive(Clone, Debug)]
pub struct ScriptedScaffolds {
    terminus: Terminus,
    bash: BashTool,
    bash_block: BashBlock,
}

impl ScriptedScaffolds {
    /// Loads the texts. Waits of the terminal end once the shell is idle, since a script needs no
    /// time.
    pub fn load(assets: &Assets) -> Result<Self, PromptsError> {
        Ok(Self {
            terminus: Terminus::load(assets, Format::Json, Wake::WhenDone)?,
            bash: BashTool::load(assets)?,
            bash_block: BashBlock::load(assets)?,
        })
    }

    /// The scaffold of a format.
    pub fn of(&self, format: MessageFormat) -> &dyn Scaffold {
        match format {
            MessageFormat::Terminus => &self.terminus,
            MessageFormat::BashTool => &self.bash,
            MessageFormat::BashBlock => &self.bash_block,
        }
    }
}

impl MessageFormat {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Terminus, Self::BashTool, Self::BashBlock];

    /// The value of `--scaffold` for this format.
    pub fn option(self) -> &'static str {
        match self {
            Self::Terminus => "terminus",
            Self::BashTool => "bash",
            Self::BashBlock => "bash-block",
        }
    }
}

/// How often each scaffold is drawn for a scripted rollout, as weights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScaffoldMix(Vec<(&'static str, u32)>);

/// Mostly terminus-2, as in LiteCoder's corpus (LiteCoder-Terminal, §4).
impl Default for ScaffoldMix {
    fn default() -> Self {
        Self(vec![("terminus", 3), ("bash", 1), ("bash-block", 1)])
    }
}

/// Why a list of weights is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ScaffoldMixError {
    #[error("`{0}` is not NAME=WEIGHT, with a whole number from 0 to 1000")]
    NotAWeight(String),
    #[error("scripted experts do not act in `{0}`; they know terminus, bash and bash-block")]
    Unknown(String),
    #[error("`{0}` is named twice")]
    Twice(String),
    #[error("all weights are 0")]
    Empty,
}

/// Larger weights could overflow the sum.
const MOST_WEIGHT: u32 = 1000;

impl FromStr for ScaffoldMix {
    type Err = ScaffoldMixError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut weights: Vec<(&'static str, u32)> = Vec::new();
        for part in text.split(',') {
            let wrong = || ScaffoldMixError::NotAWeight(part.to_owned());
            let (name, weight) = part.split_once('=').ok_or_else(wrong)?;
            let weight: u32 = weight.trim().parse().map_err(|_| wrong())?;
            if weight > MOST_WEIGHT {
                return Err(wrong());
            }
            let format = MessageFormat::ALL.into_iter().find(|format| format.option() == name.trim());
            let name = format.ok_or_else(|| ScaffoldMixError::Unknown(name.trim().to_owned()))?.option();
            if weights.iter().any(|(known, _)| *known == name) {
                return Err(ScaffoldMixError::Twice(name.to_owned()));
            }
            weights.push((name, weight));
        }
        if weights.iter().all(|(_, weight)| *weight == 0) {
            return Err(ScaffoldMixError::Empty);
        }
        Ok(Self(weights))
    }
}

impl ScaffoldMix {
    /// A format, drawn by weight.
    pub fn draw(&self, seed: Seed) -> MessageFormat {
        let mut rng = ChaCha20Rng::seed_from_u64(seed.0);
        let total: u32 = self.0.iter().map(|(_, weight)| weight).sum();
        let mut left = rng.random_range(0..total.max(1));
        for (name, weight) in &self.0 {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => {
                    return MessageFormat::ALL
                        .into_iter()
                        .find(|format| format.option() == *name)
                        .unwrap_or(MessageFormat::Terminus);
                }
            }
        }
        MessageFormat::Terminus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read() {
        let check = |text: &str, expect: Result<&[(&'static str, u32)], ScaffoldMixError>| {
            assert_eq!(
                text.parse::<ScaffoldMix>(),
                expect.map(|weights| ScaffoldMix(weights.to_vec())),
                "{text}"
            );
        };
        check("terminus=3,bash=1", Ok(&[("terminus", 3), ("bash", 1)]));
        check("bash-block=1", Ok(&[("bash-block", 1)]));
        check("react=1", Err(ScaffoldMixError::Unknown("react".to_owned())));
        check("bash", Err(ScaffoldMixError::NotAWeight("bash".to_owned())));
        check("bash=9999", Err(ScaffoldMixError::NotAWeight("bash=9999".to_owned())));
        check("bash=1,bash=2", Err(ScaffoldMixError::Twice("bash".to_owned())));
        check("bash=0", Err(ScaffoldMixError::Empty));
    }

    #[test]
    fn draws_follow_the_weights() {
        const DRAWS: u64 = 2000;
        let mix = ScaffoldMix::default();
        let terminus = (0..DRAWS).filter(|seed| mix.draw(Seed(*seed)) == MessageFormat::Terminus).count();
        assert!((1100..1300).contains(&terminus), "{terminus} of {DRAWS}, of which 3 in 5 are expected");
        let only: ScaffoldMix = "terminus=0,bash=1".parse().unwrap();
        assert!((0..100).all(|seed| only.draw(Seed(seed)) == MessageFormat::BashTool));
    }
}
