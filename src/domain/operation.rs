//! Operations: TerminalWorld's types of terminal work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sixteen operation types of TerminalWorld (arXiv 2605.22535, `operation_types.json`). They
/// are the columns of the coverage grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    FileSystem,
    TextEditing,
    CodeBuild,
    VersionControl,
    ProgramExecution,
    DataProcessing,
    Network,
    ContainerCloudNative,
    PackageManagement,
    SystemConfiguration,
    MonitoringDebugging,
    Security,
    Testing,
    Database,
    MediaProcessing,
    ShellInteraction,
}

impl Operation {
    /// All sixteen, in TerminalWorld's order.
    pub const ALL: [Self; 16] = [
        Self::FileSystem,
        Self::TextEditing,
        Self::CodeBuild,
        Self::VersionControl,
        Self::ProgramExecution,
        Self::DataProcessing,
        Self::Network,
        Self::ContainerCloudNative,
        Self::PackageManagement,
        Self::SystemConfiguration,
        Self::MonitoringDebugging,
        Self::Security,
        Self::Testing,
        Self::Database,
        Self::MediaProcessing,
        Self::ShellInteraction,
    ];

    /// The id used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FileSystem => "file-system",
            Self::TextEditing => "text-editing",
            Self::CodeBuild => "code-build",
            Self::VersionControl => "version-control",
            Self::ProgramExecution => "program-execution",
            Self::DataProcessing => "data-processing",
            Self::Network => "network",
            Self::ContainerCloudNative => "container-cloud-native",
            Self::PackageManagement => "package-management",
            Self::SystemConfiguration => "system-configuration",
            Self::MonitoringDebugging => "monitoring-debugging",
            Self::Security => "security",
            Self::Testing => "testing",
            Self::Database => "database",
            Self::MediaProcessing => "media-processing",
            Self::ShellInteraction => "shell-interaction",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_what_serde_writes() {
        for operation in Operation::ALL {
            assert_eq!(serde_json::to_value(operation).unwrap(), operation.as_str());
        }
    }
}
