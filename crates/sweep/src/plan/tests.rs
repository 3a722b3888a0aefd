use super::*;

const LAB: &str = "name = \"n\"\n[lab]\nscenario = \"s.toml\"\n";

fn plan(text: &str) -> Plan {
    read(text, "plan.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

fn refusal(text: &str) -> String {
    read(text, "plan.toml").expect_err("a bad plan").to_string()
}

#[test]
fn template_is_a_valid_plan() {
    let plan = plan(TEMPLATE);
    assert_eq!((plan.factors.len(), plan.rules.blocks), (1, Some(10)));
    assert!(
        matches!(&plan.subject, Subject::Lab(lab) if lab.scenario.value == "gallery:buffer-size" && lab.set.len() == 2)
    );
}

#[test]
fn commented_host_options_of_the_template_are_valid() {
    let text = "name = \"n\"\n[run]\ntarget = \"dtn2\"\ntime = \"10s\"\n[[factor]]\nname = \"cc\"\nkey = \"run.congestion\"\n\
                levels = [\"cubic\", \"bbr\"]\n[[factor]]\nkey = \"host.server.sysctl:net.ipv4.tcp_rmem\"\n\
                levels = [\"4096 131072 6291456\", \"4096 131072 67108864\"]\n";
    let plan = plan(text);
    let Subject::Hosts(hosts) = &plan.subject else { panic!("hosts") };
    assert_eq!(hosts.target.as_ref().map(|target| target.value.as_str()), Some("dtn2"));
    assert_eq!(hosts.options.len(), 1);
    assert_eq!(plan.describe(&[1, 0]), "cc bbr, host.server.sysctl:net.ipv4.tcp_rmem 4096 131072 6291456");
}

#[test]
fn typos_are_reported_with_line_key_and_suggestion() {
    let text = refusal(&format!("{LAB}[[factor]]\nkey = \"x\"\nlevls = [1]\n"));
    assert!(text.contains("plan.toml:6:1: factor.0.levls: unknown key `levls`"), "{text}");
    assert!(text.contains("did you mean `levels`?"), "{text}");
    let text = refusal(&format!("metric = \"gootput\"\n{LAB}"));
    assert!(text.contains("plan.toml:1:10: metric: unknown metric `gootput`"), "{text}");
    assert!(text.contains("did you mean `goodput`?"), "{text}");
    let text = refusal(&LAB.replace("[lab]", "[labs]"));
    assert!(text.contains("did you mean `lab`?"), "{text}");
    let text = refusal(&LAB.replace("scenario", "scenaro"));
    assert!(text.contains("did you mean `scenario`?") && text.contains("plan.toml:3:1"), "{text}");
    let text = refusal(&format!("{LAB}[factor]\nkey = \"x\"\nlevels = [1]\n"));
    assert!(text.contains("write [[factor]], with two brackets"), "{text}");
}

#[test]
fn settings_that_a_factor_sets_too_are_refused() {
    let factor = |key: &str| format!("[[factor]]\nkey = \"{key}\"\nlevels = [1, 4]\n");
    let run = "name = \"n\"\n[run]\ntarget = \"t\"\nparallel = 2\ntime = \"1s\"\n";
    let text = refusal(&format!("{run}{}", factor("run.parallel")));
    assert!(text.contains("plan.toml:4:1: run.parallel: the factor `run.parallel` sets this too"), "{text}");
    let cross = "[[cross]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1G\"\n";
    let text = refusal(&format!("{run}{cross}{}", factor("cross.0.rate")));
    assert!(text.contains("plan.toml:9:1: cross.0.rate: the factor"), "{text}");
    let set = "set = { time = \"1s\", \"host.*.congestion\" = \"bbr\" }\n";
    for key in ["host.*.congestion", "hosts.congestion", "host.a.congestion", "time"] {
        let text = refusal(&format!("{LAB}{set}{}", factor(key)));
        assert!(text.contains("plan.toml:4:") && text.contains("sets this too"), "{key}: {text}");
    }
    plan(&format!("{run}{}", factor("run.window")));
    // One host may differ from the default of all.
    plan(&format!("{LAB}set = {{ \"hosts.congestion\" = \"bbr\" }}\n{}", factor("host.a.congestion")));
}

#[test]
fn conflicts_between_factors_are_refused() {
    let factor = |name: &str, key: &str| format!("[[factor]]\nname = \"{name}\"\nkey = \"{key}\"\nlevels = [1, 2]\n");
    let text = refusal(&format!("{LAB}{}{}", factor("a", "x"), factor("b", "x")));
    assert!(text.contains("two factors set `x`") && text.contains("plan.toml:10:"), "{text}");
    for (one, other) in [
        ("hosts.congestion", "host.*.congestion"),
        ("host.*.congestion", "host.a.congestion"),
        ("flow.tcp.window", "flow.*.window"),
    ] {
        let text = refusal(&format!("{LAB}{}{}", factor("a", one), factor("b", other)));
        assert!(text.contains(&format!("`{other}` sets what `{one}` of another factor sets")), "{text}");
        assert!(text.contains("plan.toml:10:"), "{text}");
    }
    plan(&format!("{LAB}{}{}", factor("a", "hosts.congestion"), factor("b", "hosts.window")));
    let text = refusal(&format!("{LAB}{}{}", factor("a", "x"), factor("a", "y")));
    assert!(text.contains("two factors are called `a`"), "{text}");
}

#[test]
fn empty_and_duplicate_levels_are_rejected() {
    let with = |levels: &str| format!("{LAB}[[factor]]\nkey = \"x\"\nlevels = {levels}\n");
    assert!(refusal(&with("[]")).contains("the list is empty"));
    assert!(refusal(&with("[\"1MB\", \"2MB\", \"1MB\"]")).contains("the level \"1MB\" is there twice"));
    assert!(refusal(&with("3")).contains("expected an array"));
}

#[test]
fn one_factor_can_set_several_keys() {
    let text = format!(
        "{LAB}[[factor]]\nname = \"f\"\nkeys = [\"x\", \"y\"]\nlevels = [[1, \"a\"], [2, \"b\"]]\nlabels = [\"small\", \"large\"]\n"
    );
    let plan = plan(&text);
    assert_eq!(plan.factors[0].key(), "x, y");
    assert_eq!(plan.factors[0].levels[1].name(), "large");
    assert_eq!(plan.factors[0].levels[1].values.len(), 2);
    let text = refusal(&text.replace("[2, \"b\"]", "[2]"));
    assert!(text.contains("a level of 2 keys is an array of 2 values"), "{text}");
}

#[test]
fn a_fraction_needs_two_levels_of_each_factor() {
    let factors = |count: usize, levels: &str| -> String {
        let tables = (0..count).map(|i| format!("[[factor]]\nkey = \"x{i}\"\nlevels = {levels}\n"));
        tables.collect::<Vec<_>>().concat()
    };
    let with = |fraction: &str, factors: String| format!("fraction = \"{fraction}\"\n{LAB}{factors}");
    assert_eq!(plan(&with("1/2", factors(3, "[1, 2]"))).fraction, 1);
    assert!(refusal(&with("1/2", factors(3, "[1, 2, 3]"))).contains("two levels of each factor"));
    assert!(refusal(&with("1/3", factors(3, "[1, 2]"))).contains("`1/3` is not a fraction"));
    assert!(refusal(&with("1/4", factors(3, "[1, 2]"))).contains("cannot separate"));
}

#[test]
fn more_cells_than_the_maximum_are_refused() {
    let factors =
        (0..14).map(|i| format!("[[factor]]\nkey = \"x{i}\"\nlevels = [1, 2]\n")).collect::<Vec<_>>().concat();
    assert!(refusal(&format!("{LAB}{factors}")).contains("16384 cells, the maximum is 10000"));
    assert_eq!(plan(&format!("fraction = \"1/16\"\n{LAB}{factors}")).fraction, 4);
}

#[test]
fn plan_has_exactly_one_subject() {
    assert!(refusal("name = \"n\"\n").contains("does not say what it measures"));
    assert!(refusal(&format!("{LAB}[run]\ntarget = \"x\"\n")).contains("a scenario or hosts"));
    assert!(refusal("name = \"n\"\n[run]\ntime = \"1s\"\n").contains("`target` is missing"));
    let both = "name = \"n\"\n[run]\ntarget = \"x\"\n[hosts]\nsenders = [\"a\"]\nreceivers = [\"b\"]\n";
    assert!(refusal(both).contains("`target` and [hosts]"));
    assert!(refusal("name = \"n\"\n[hosts]\nsenders = []\nreceivers = [\"b\"]\n").contains("the list is empty"));
}

#[test]
fn stopping_rules_are_parsed() {
    let rules = |text: &str| plan(&format!("{text}\n{LAB}")).rules;
    assert_eq!(rules("").blocks, Some(10));
    let both = rules("until = \"ci<2%\"\nbudget = \"30m\"");
    assert_eq!((both.blocks, both.budget_ns), (None, Some(1_800_000_000_000)));
    assert!(refusal(&format!("budget = \"fish\"\n{LAB}")).contains("budget"));
    assert!(refusal(&format!("until = \"2%\"\n{LAB}")).contains("not a precision"));
    assert!(refusal(&format!("blocks = 0\n{LAB}")).contains("use 1 to"));
}
