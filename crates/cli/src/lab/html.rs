//! Reports.
pub fn run(_: &landspeed_model::LabDocument) -> anyhow::Result<String> {
    anyhow::bail!("no report yet")
}
pub fn set(_: &landspeed_model::LabSetDocument) -> anyhow::Result<String> {
    anyhow::bail!("no report yet")
}
