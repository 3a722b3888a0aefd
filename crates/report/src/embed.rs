//! The document as it stands inside the page.

use landspeed_model::RunDocument;

/// The document as JSON that no HTML parser can mistake for markup, without the raw `tcp_info` blobs.
pub(crate) fn document(document: &RunDocument) -> Result<String, serde_json::Error> {
    let mut copy = document.clone();
    for stream in &mut copy.streams {
        for end in [&mut stream.sender, &mut stream.receiver].into_iter().flatten() {
            for sample in &mut end.samples {
                sample.tcp_info_raw = None;
            }
        }
    }
    Ok(inert(&serde_json::to_string(&copy)?))
}

/// JSON in which `<` is spelled `\u003c`: it can only stand inside strings, and without it neither `</script>` nor
/// `<!--` can end or bend the element the JSON is in.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::inert;

    #[test]
    fn markup_in_strings_cannot_end_the_script_element() {
        let json = inert(&serde_json::to_string("</script><!--<script>").unwrap());
        assert!(!json.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "</script><!--<script>");
    }
}
