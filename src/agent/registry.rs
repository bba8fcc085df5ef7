//! All scaffolds for models. A new one is a file and a line here.

use super::scaffold::ScaffoldEntry;
use super::{bash, bash_block, installed, react, terminus_scaffold};

/// In the order of the help text.
pub const SCAFFOLDS: &[ScaffoldEntry] = &[
    terminus_scaffold::JSON_ENTRY,
    terminus_scaffold::XML_ENTRY,
    bash::ENTRY,
    bash_block::ENTRY,
    react::ENTRY,
    installed::ENTRY,
];
