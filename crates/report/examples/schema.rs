//! Prints the schema of the run document, for `npm --prefix web run schema`.
fn main() {
    let schema = landspeed_model::schema("run").expect("the model has a run document");
    println!("{schema:#}");
}
