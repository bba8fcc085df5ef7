//! The protocols that models can speak, and everything that is said in them.

use super::forensics::Forensics;
use crate::agent::terminal::Wake;
use crate::agent::terminus::{self, Format};
use crate::agent::{
    AgentError, ArmTexts, BASH, BASH_BLOCK, BashBlock, BashTool, COMMAND, Conversation, Ended,
    EpisodeContext, Hooks, PlainSummary, Policy, Prompts, PromptsError, REACT, React, SummaryTexts,
    TERMINUS_JSON, TERMINUS_XML, Terminus, TurnLog, run_episode, terminus_texts,
};
use crate::assets::Assets;
use crate::model::End;

/// The protocols that models can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScaffoldKind {
    Bash,
    BashBlock,
    React,
    TerminusJson,
    TerminusXml,
    /// A program of its own in the sandbox.
    Command,
}

impl ScaffoldKind {
    /// The name in records and rows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bash => BASH,
            Self::BashBlock => BASH_BLOCK,
            Self::React => REACT,
            Self::TerminusJson => TERMINUS_JSON,
            Self::TerminusXml => TERMINUS_XML,
            Self::Command => COMMAND,
        }
    }
}

/// The texts of all scaffolds and arms, and the patterns of forensics.
#[derive(Clone, Debug)]
pub struct Texts {
    bash_block: Prompts,
    bash: BashTool,
    react: React,
    terminus_json: terminus::Texts,
    terminus_xml: terminus::Texts,
    pub(super) arms: ArmTexts,
    pub(super) summary: PlainSummary,
    forensics: Forensics,
}

impl Texts {
    /// Reads them.
    pub fn load(assets: &Assets, forensics: Forensics) -> Result<Self, PromptsError> {
        Ok(Self {
            bash_block: Prompts::load(assets)?,
            bash: BashTool::load(assets)?,
            react: React::load(assets)?,
            terminus_json: terminus_texts(assets, Format::Json)?,
            terminus_xml: terminus_texts(assets, Format::Xml)?,
            arms: ArmTexts::load(assets)?,
            summary: PlainSummary::load(assets)?,
            forensics,
        })
    }

    /// The patterns by which commands are examined.
    pub fn forensics(&self) -> &Forensics {
        &self.forensics
    }

    /// In whose words a conversation is summed up.
    pub(super) fn summaries(&self, scaffold: ScaffoldKind) -> SummaryTexts<'_> {
        match scaffold {
            ScaffoldKind::TerminusJson => SummaryTexts::Terminus(&self.terminus_json),
            ScaffoldKind::TerminusXml => SummaryTexts::Terminus(&self.terminus_xml),
            _ => SummaryTexts::Plain(&self.summary),
        }
    }

    pub(super) fn digest(&self, scaffold: ScaffoldKind) -> String {
        match scaffold {
            ScaffoldKind::Bash => self.bash.digest(),
            ScaffoldKind::BashBlock => self.bash_block.digest(),
            ScaffoldKind::React => self.react.digest(),
            ScaffoldKind::TerminusJson => self.terminus_json.digest(),
            ScaffoldKind::TerminusXml => self.terminus_xml.digest(),
            // What such an agent is told it tells itself.
            ScaffoldKind::Command => String::new(),
        }
    }
}

/// A protocol with its texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Protocol<'a> {
    pub(super) texts: &'a Texts,
    pub(super) kind: ScaffoldKind,
    pub(super) wake: Wake,
}

impl Protocol<'_> {
    /// Plays an episode in it.
    pub(super) async fn play<M: Policy, N: TurnLog>(
        self,
        policy: &mut M,
        conversation: &mut Conversation,
        instruction: &str,
        episode: &EpisodeContext<'_>,
        hooks: Hooks<'_, N>,
    ) -> Result<Ended, AgentError> {
        let Self { texts, kind, wake } = self;
        match kind {
            ScaffoldKind::Bash => {
                run_episode(&mut texts.bash.clone(), policy, conversation, instruction, episode, hooks).await
            }
            ScaffoldKind::BashBlock => {
                let mut scaffold = BashBlock::new(&texts.bash_block);
                run_episode(&mut scaffold, policy, conversation, instruction, episode, hooks).await
            }
            ScaffoldKind::React => {
                run_episode(&mut texts.react.clone(), policy, conversation, instruction, episode, hooks).await
            }
            ScaffoldKind::TerminusJson => {
                let mut scaffold = Terminus::new(texts.terminus_json.clone(), wake);
                run_episode(&mut scaffold, policy, conversation, instruction, episode, hooks).await
            }
            ScaffoldKind::TerminusXml => {
                let mut scaffold = Terminus::new(texts.terminus_xml.clone(), wake);
                run_episode(&mut scaffold, policy, conversation, instruction, episode, hooks).await
            }
            // Its loop is not ours: nobody asks for a protocol that there is none of.
            ScaffoldKind::Command => {
                let cause = "an agent with a loop of its own cannot be played turn by turn".to_owned();
                Ok(Ended { end: End::ResumeDiverged, cause })
            }
        }
    }
}
