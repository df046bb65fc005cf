//! What commands that begin sessions have in common.

use dnslab_experiment::{FirstQueryError, SessionError};
use dnslab_lab::GuardProgram;
use dnslab_results::ResultsError;
use dnslab_settings::OptionForm;

use crate::exit::Failure;

/// dnslab itself, as the guard of a server.
pub(crate) fn guard() -> GuardProgram {
    GuardProgram::this_program(["guard"])
}

/// Wrong input has its own exit code.
pub(crate) fn failure(error: SessionError) -> Failure {
    match error {
        SessionError::Experiment(_)
        | SessionError::Untrusted(_)
        | SessionError::Imported { .. }
        | SessionError::Queries(_)
        | SessionError::Variant { .. }
        | SessionError::Slices(_)
        | SessionError::Results(ResultsError::NotResults { .. }) => Failure::bad_input(error),
        _ => error.into(),
    }
}

/// [`failure`] with a remedy. The one variant of `dnslab load` has a name that says nothing, so it is left
/// out.
pub(crate) fn failure_with_remedy(error: SessionError, form: OptionForm) -> Failure {
    let SessionError::FirstQuery { source, .. } = &error else { return failure(error) };
    let what = match form {
        OptionForm::Set => error.to_string(),
        OptionForm::Flag => source.to_string(),
    };
    let hint = source.remedy(form).map(|remedy| format!("\n  hint:    {remedy}"));
    let error = anyhow::anyhow!("{what}{}", hint.unwrap_or_default());
    match **source {
        FirstQueryError::Tls(_) | FirstQueryError::Queries(_) => Failure::bad_input(error),
        _ => error.into(),
    }
}
