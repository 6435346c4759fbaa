//! Tests of the configuration: parsed values, and the full text of every error.

use super::*;
use crate::memory::MemorySettings;
use crate::stack::Stack;

fn read(text: &str) -> Config {
    Config::from_text("my.toml", text).unwrap()
}

fn error(text: &str) -> String {
    Config::from_text("my.toml", text).unwrap_err().text
}

fn with_variables(config: Config, variables: &[(&str, &str)]) -> Config {
    let variables = variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
    config.with_environment(variables.collect())
}

fn text(config: &Config, component: &str, key: &str) -> Option<String> {
    config.value(Table::Component(component), key).map(|value| value.value)
}

/// The components of a chain, siblings in brackets.
fn shape(items: &[Item]) -> String {
    let item = |item: &Item| match item {
        Item::One(name) => name.text.clone(),
        Item::Each(name) => format!("{}*", name.text),
        Item::Siblings(chains) => {
            format!("[{}]", chains.iter().map(|chain| shape(chain)).collect::<Vec<_>>().join(" | "))
        }
    };
    items.iter().map(item).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_built_in_configuration_names_the_cpu_stacks() {
    let config = Config::built_in().unwrap();
    let stack = config.choose_stack(None).unwrap();
    assert_eq!((stack.name.as_str(), shape(&stack.items).as_str()), ("cpu", "filter fuser node ve-cpu"));
    let plain = config.choose_stack(Some("cpu-plain")).unwrap();
    assert_eq!(shape(&plain.items), "fuser-singleton node ve-cpu");
    assert_eq!(text(&config, "fuser-singleton", "library").as_deref(), Some("bh_fuser"));
}

/// `cargo xtask header` writes that part of the file.
#[test]
fn the_default_file_has_every_key_at_its_default() {
    let uncommented: String = DEFAULT
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(setting) if setting.starts_with('[') && !setting.contains(' ') => setting,
            Some(setting) if setting.split_once(" = ").is_some_and(|(key, _)| !key.contains(' ')) => setting,
            _ => line,
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let config = Config::from_text("default.toml", &uncommented).unwrap();
    assert_eq!(config.memory_settings(), Config::built_in().unwrap().memory_settings());
    for section in keys::SECTIONS {
        let table = if section.is_component { Table::Component(section.name) } else { Table::Core(section.name) };
        for row in section.rows {
            let value = config.value(table, row.name).map(|value| value.value);
            assert_eq!(value, Some(row.default_text()), "{}.{} in default.toml", section.name, row.name);
        }
    }
}

#[test]
fn values_of_all_types_become_text() {
    let config = read(
        "[stacks]\na = ['x']\n[components.x]\ntext = 'yes'\nnumber = 0x10\nlong = 1_000\nfloat = 1.5\nflag = true\n\
         list = ['a', 2, false]",
    );
    let expected = [("text", "yes"), ("number", "16"), ("long", "1000"), ("float", "1.5"), ("flag", "true")];
    for (key, value) in expected {
        assert_eq!(text(&config, "x", key).as_deref(), Some(value));
    }
    assert_eq!(text(&config, "x", "list").as_deref(), Some("a,2,false"));
    assert_eq!(text(&config, "x", "none"), None);
    let entry = config.value(Table::Component("x"), "number").unwrap();
    assert_eq!(entry.place, "my.toml:5");
}

#[test]
fn stacks_have_siblings_aliases_and_a_default() {
    let config = read("[stacks]\na = ['node', ['gpu', ['x', 'y']], 'cpu']\nb = 'a'");
    assert_eq!(shape(&config.choose_stack(Some("b")).unwrap().items), "node [gpu | x y] cpu");
    let each = read("[stacks]\na = ['x', [['node', 'gpu*'], 'y'], 'cpu']").choose_stack(None).unwrap();
    assert_eq!(shape(&each.items), "x [node gpu* | y] cpu");
    let either = read("[stacks]\na = ['x', [['gpu|other*'], 'y']]\n[components.gpu]\nz = 1\n[components.other]\nz = 2");
    let Item::Siblings(chains) = &either.choose_stack(None).unwrap().items[1] else { panic!("no siblings") };
    let Item::Each(place) = &chains[0][0] else { panic!("not for each device") };
    assert_eq!(place.alternatives().map(|name| name.text).collect::<Vec<_>>(), ["gpu", "other"]);
    assert_eq!(
        shape(&read(&either.describe(&either.choose_stack(None).unwrap())).choose_stack(None).unwrap().items),
        "x [gpu|other* | y]"
    );
    assert_eq!(read("[stacks]\nonly = ['x']").choose_stack(None).unwrap().name, "only");
    let picked = with_variables(read("[stacks]\na = ['x']\nb = ['y']"), &[("BH_STACK", "b")]);
    assert_eq!(picked.choose_stack(None).unwrap().name, "b");
    assert_eq!(picked.choose_stack(Some("a")).unwrap().name, "a", "the program's choice counts more");
}

#[test]
fn a_file_without_stacks_changes_the_built_in_ones() {
    let config = read("[components.fuser-singleton]\nmax_block = 4\n[components.ve-cpu]\nthreads = 2");
    assert_eq!(shape(&config.choose_stack(None).unwrap().items), "filter fuser node ve-cpu");
    assert_eq!(text(&config, "fuser-singleton", "algorithm").as_deref(), Some("singleton"));
    assert_eq!(text(&config, "fuser-singleton", "max_block").as_deref(), Some("4"));
    assert_eq!(text(&config, "ve-cpu", "threads").as_deref(), Some("2"));
}

#[test]
fn variables_override_keys() {
    let config = read("[stacks]\na = ['ve-cpu']\n[components.ve-cpu]\nthreads = 2\n[memory]\nlimit = '1GiB'");
    let config = with_variables(config, &[("BH_VE_CPU_THREADS", "3"), ("BH_MEMORY_LIMIT", "2GiB"), ("BH_X", "")]);
    assert_eq!(text(&config, "ve-cpu", "threads").as_deref(), Some("3"));
    assert_eq!(config.memory_settings().unwrap().limit, 2 << 30);
    assert_eq!(
        read("[memory]\nlimit = 'none'\ncache = 0\nhuge_pages = false").memory_settings(),
        Ok(MemorySettings { limit: usize::MAX, cache: 0, huge_pages: false })
    );
    let checks = |config: Config| config.checks().map_err(|error| error.text);
    assert_eq!(
        checks(read("[recorder]\ncheck = ['nan', 'bounds']")),
        Ok(Checks { nan: true, bounds: true, ..Checks::default() })
    );
    let both = with_variables(read("[recorder]\ncheck = 'nan'"), &[("BH_CHECK", "bounds")]);
    assert_eq!(checks(both), Ok(Checks { bounds: true, ..Checks::default() }));
    let wrong = with_variables(read("[stacks]\na = ['x']"), &[("BH_CHECK", "nan,bound")]);
    let valid = "'bound' is no check; valid: bounds, cancellation, cancellation=BITS, inf, nan, nan-all, overflow, zero-division, or a list of them, or none";
    assert_eq!(checks(wrong), Err(format!("environment variable BH_CHECK: {valid}")));
    let wrong = checks(read("[recorder]\n\ncheck = ['bound']"));
    assert_eq!(wrong, Err(format!("my.toml:3: key 'check': {valid}")));
    let number = read("[recorder]\nmax_bytes = '1MiB'").core_if_set(&keys::recorder::MAX_BYTES);
    assert_eq!(number, Ok(Some(Size(1 << 20))));
    assert_eq!(read("").core_if_set(&keys::recorder::MAX_BYTES), Ok(None));
    assert_eq!(read("").core(&keys::recorder::MAX_INSTRUCTIONS), Ok(Size(1000)));
}

#[test]
fn errors_of_files_name_line_key_and_nearest_name() {
    let cases = [
        ("stakcs = 1", "my.toml:1: unknown key 'stakcs'; did you mean 'stacks'?"),
        ("x = 1", "my.toml:1: unknown key 'x'; valid keys: components, library_path, memory, recorder, stacks"),
        ("[memory]\nlimits = 1", "my.toml:2: unknown key 'limits' in [memory]; did you mean 'limit'?"),
        (
            "[recorder]\n\nfoo = 1",
            "my.toml:3: unknown key 'foo' in [recorder]; valid keys: casts, check, immediate_bytes, max_bytes, max_instructions, programs, recipes, reproducible, small_bytes",
        ),
        ("[stacks]\na = []", "my.toml:2: stack 'a' is empty; it needs at least one component"),
        ("[stacks]\na = ['x', []]", "my.toml:2: stack 'a' has an empty set of siblings"),
        ("[stacks]\na = ['x', 'y|']", "my.toml:2: stack 'a' has 'y|', which lacks a name"),
        ("[stacks]\na = ['x', 'y*']", "my.toml:2: stack 'a' has 'y*' outside of a list of siblings"),
        ("[stacks]\na = ['x',\n 7]", "my.toml:3: stack 'a' must list names of components, not integer"),
        (
            "[stacks]\na = 7",
            "my.toml:2: key 'a' must be a list of components or the name of another stack, not integer",
        ),
        ("stacks = 7", "my.toml:1: key 'stacks' must be a table, not integer"),
        ("library_path = 'x'", "my.toml:1: key 'library_path' must be a list, not string"),
        (
            "[stacks]\na = ['x']\n[components.x]\nk = { a = 1 }",
            "my.toml:4: key 'k' must be a text, a number, true, false, or a list of these, not table",
        ),
        (
            "[stacks]\na = ['filter']\n[components.fitler]",
            "my.toml:3: section [components.fitler] is of a component that no stack names; did you mean 'filter'?",
        ),
        ("[stacks]\na = [", "my.toml:2: unclosed array, expected `]`"),
        ("[memory]\nlimit = 1\nlimit = 2", "my.toml:3: duplicate key"),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn errors_of_stacks_name_them() {
    let choose = |text: &str, name| read(text).choose_stack(name).unwrap_err().text;
    assert_eq!(choose("[stacks]\na = 'b'\nb = 'a'", Some("a")), "my.toml:3: stacks form a cycle: a -> b -> a");
    assert_eq!(
        choose("[stacks]\na = ['x',\n'y', 'x']", Some("a")),
        "my.toml:3: stack 'a' forms a cycle: x -> y -> x; give the second instance a section of its own with the same \
         'library'"
    );
    assert_eq!(
        choose("[stacks]\na = ['x', ['y', 'z'],\n'y']", Some("a")),
        "my.toml:3: stack 'a' forms a cycle: x -> y -> y; give the second instance a section of its own with the same \
         'library'"
    );
    assert_eq!(choose("[stacks]\ncpu = ['x']", Some("cpo")), "my.toml: unknown stack 'cpo'; did you mean 'cpu'?");
    assert_eq!(choose("[stacks]\na = 'opencl'", None), "my.toml:2: unknown stack 'opencl'; stacks: a");
    assert_eq!(
        choose("[stacks]\na = ['x']\nb = ['x']", None),
        "my.toml: [stacks] has no key 'default', and no stack is chosen; stacks: a, b"
    );
    let config = with_variables(read("[stacks]\ncpu = ['x']"), &[("BH_STACK", "gpu")]);
    assert_eq!(
        config.choose_stack(None).unwrap_err().text,
        "environment variable BH_STACK: unknown stack 'gpu'; did you mean 'cpu'?"
    );
}

#[test]
fn one_variable_names_the_device_of_all_components() {
    let text = "[stacks]\na = ['x', 'y']\n[components.x]\ndevice = 'one'\nother = 2";
    let config = with_variables(read(text), &[("BH_DEVICE", "gpu"), ("BH_Y_DEVICE", "cpu")]);
    let found = |component, key| config.value(Table::Component(component), key).map(|it| (it.value, it.place));
    let from = |value: &str, place: &str| Some((value.to_owned(), format!("environment variable {place}")));
    assert_eq!(found("x", "device"), from("gpu", "BH_DEVICE"));
    assert_eq!(found("y", "device"), from("cpu", "BH_Y_DEVICE"));
    assert_eq!(found("x", "other"), Some(("2".into(), "my.toml:5".into())));
}

#[test]
fn errors_of_values_name_place_and_form() {
    let memory = |config: Config| config.memory_settings().unwrap_err().text;
    let form = "a size like 8GiB, 512MiB, 4096 or 90% (of the machine's memory), or none";
    assert_eq!(
        memory(read("[memory]\n\nlimit = '8 apples'")),
        format!("my.toml:3: key 'limit' must be {form}, not '8 apples'")
    );
    assert_eq!(
        memory(with_variables(read(""), &[("BH_MEMORY_CACHE", "lots")])),
        format!("environment variable BH_MEMORY_CACHE: key 'cache' must be {form}, not 'lots'")
    );
    assert_eq!(
        memory(read("[memory]\nhuge_pages = 'maybe'")),
        "my.toml:2: key 'huge_pages' must be true or false, not 'maybe'"
    );
    assert_eq!(
        read("[recorder]\nmax_bytes = 'half'").core(&keys::recorder::MAX_BYTES).unwrap_err().text,
        format!("my.toml:2: key 'max_bytes' must be {form}, not 'half'")
    );
    assert_eq!(
        with_variables(read(""), &[("BH_LOG", "loud")]).log_level().unwrap_err().text,
        "environment variable BH_LOG: 'loud' is no log level; valid: off, error, warn, info, debug"
    );
}

#[test]
fn keys_and_variables_of_components_are_checked_against_their_lists() {
    let config = read("[stacks]\na = ['ve-cpu']\n[components.ve-cpu]\nlibrary = 'x'\nthraeds = 2");
    let keys = ["threads".to_owned(), "affinity".to_owned()];
    assert_eq!(
        config.check_keys("ve-cpu", &keys).unwrap_err().text,
        "my.toml:5: unknown key 'thraeds' in [components.ve-cpu]; did you mean 'threads'?"
    );
    let check = |variable: &str| {
        let config = with_variables(read(""), &[(variable, "1")]);
        config.check_environment([("ve-cpu", &keys[..]), ("ve", &[][..])].into_iter()).map_err(|error| error.text)
    };
    for valid in ["BH_VE_CPU_THREADS", "BH_VE_CPU_LIBRARY", "BH_VE_LIBRARY", "BH_MEMORY_LIMIT", "BH_ELSEWHERE"] {
        assert_eq!(check(valid), Ok(()), "{valid}");
    }
    assert_eq!(
        check("BH_VE_CPU_THREAD"),
        Err("unknown environment variable BH_VE_CPU_THREAD; did you mean 'BH_VE_CPU_THREADS'?".to_owned())
    );
    assert_eq!(
        check("BH_MEMORY_SIZE"),
        Err("unknown environment variable BH_MEMORY_SIZE; valid: BH_MEMORY_LIMIT, BH_MEMORY_CACHE, BH_MEMORY_HUGE_PAGES".to_owned())
    );
}

#[test]
fn missing_and_foreign_libraries_are_errors_of_their_line() {
    let load = |text: &str| Stack::load(&read(text), None).map(|_| ()).unwrap_err().text;
    let directories = crate::loader::library_directories(&read(""));
    let shown: Vec<String> = directories.iter().map(|directory| directory.display().to_string()).collect();
    assert_eq!(
        load("[stacks]\na = [\n'fusre']"),
        format!(
            "my.toml:3: component 'fusre': no library 'libbh_fusre.so' in {}; did you mean component 'fuser'?",
            shown.join(", ")
        )
    );
    let directory = std::env::temp_dir().join(format!("bh-config-test-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (file, config) = (directory.join("libtext.so"), directory.join("config.toml"));
    std::fs::write(&file, "no library").unwrap();
    std::fs::write(&config, "[stacks]\na = ['x']\n[components.x]\nlibrary = './libtext.so'").unwrap();
    let error = Stack::load(&Config::from_file(&config).unwrap(), None).map(|_| ()).unwrap_err().text;
    let place =
        format!("{}:4: library '{}' cannot be loaded: ", config.display(), directory.join("./libtext.so").display());
    assert!(error.starts_with(&place), "{error}");
    std::fs::remove_dir_all(&directory).unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let libc = maps.split_whitespace().find(|word| word.contains("/libc.so")).unwrap();
    assert_eq!(
        load(&format!("[stacks]\na = ['x']\n[components.x]\nlibrary = '{libc}'")),
        format!(
            "my.toml:4: library '{libc}' is no component: it exports neither 'bh_component_entry' nor \
             'c_component_entry'"
        )
    );
    assert_eq!(
        Config::from_file(Path::new("/no/such/file.toml")).unwrap_err().text,
        "/no/such/file.toml: the configuration cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn what_is_no_file_of_bounded_length_is_refused_at_once() {
    let directory = std::env::temp_dir().join(format!("bh-config-bounds-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let fifo = directory.join("fifo.toml");
    let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: the path is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let failure = |path: &std::path::Path| Config::from_file(path).unwrap_err().text;
    for path in [fifo.as_path(), std::path::Path::new("/dev/zero"), directory.as_path()] {
        assert!(failure(path).ends_with("it is no regular file"), "{}", failure(path));
    }
    let long = directory.join("long.toml");
    std::fs::write(&long, "# \n".repeat(400_000)).unwrap();
    assert!(failure(&long).ends_with("it is longer than 1048576 bytes"), "{}", failure(&long));
    std::fs::write(&long, [b'#', 0xff, b'\n']).unwrap();
    assert!(failure(&long).ends_with("it is not UTF-8"));
    std::fs::remove_dir_all(directory).unwrap();
}

/// Regression: the time for each of these grew with the square of its size, to minutes.
#[test]
fn large_texts_take_time_as_they_are_long() {
    let refused = |text: &str| {
        Config::from_text("x.toml", text).and_then(|config| config.choose_stack(Some("a")).map(drop)).unwrap_err().text
    };
    let lines = "\n".repeat(900_000) + "wrong = 1";
    assert!(refused(&lines).starts_with("x.toml:900001: unknown key 'wrong'"));
    let names: String = (0..30_000).map(|number| format!("s{number} = ['node']\n")).collect();
    assert!(refused(&format!("[stacks]\n{names}")).contains("unknown stack 'a'; "));
    let sections: String = (0..20_000).map(|number| format!("[components.c{number}]\n")).collect();
    assert!(refused(&format!("[stacks]\na = ['node']\n{sections}")).contains("of a component that no stack names"));
    let aliases: String = (0..30_000).map(|number| format!("s{number} = 's{}'\n", number + 1)).collect();
    assert!(refused(&format!("[stacks]\na = 's0'\n{aliases}")).contains("unknown stack 's30000'"));
    let long = "x".repeat(900_000);
    assert!(refused(&format!("{long} = 1")).contains("unknown key 'xxx"));
    let many = "'node', ".repeat(100_000);
    assert!(refused(&format!("[stacks]\na = [{many}]")).ends_with("stack 'a' has more than 256 components"));
    let siblings = "['x', 'y'], ".repeat(60);
    assert!(refused(&format!("[stacks]\na = [{siblings} 'z']")).ends_with("stack 'a' has more than 256 components"));
    let deep = "[".repeat(200_000);
    assert!(!refused(&format!("[stacks]\na = {deep}")).is_empty());
}

#[test]
fn a_stack_is_described_as_a_configuration_of_its_own() {
    let config = read(
        "library_path = ['/opt/\"my\" engines']\n[stacks]\nfirst = ['a', ['b', ['c', 'd']], 'e']\nother = ['f']\nit = 'first'\n\
         [components.a]\nlibrary = './liba.so'\nsizes = [1, 2]\n[components.f]\nkey = 1\n[components.e]\ntext = 'a\\b'\n\
         [memory]\nlimit = '1GiB'\n",
    );
    let chosen = config.choose_stack(Some("it")).unwrap();
    let described = read(&config.describe(&chosen));
    let again = described.choose_stack(None).unwrap();
    assert_eq!((again.name.as_str(), shape(&again.items)), ("first", shape(&chosen.items)));
    for (component, key) in [("a", "library"), ("a", "sizes"), ("e", "text"), ("f", "key")] {
        let expected = text(&config, component, key).filter(|_| component != "f");
        assert_eq!(text(&described, component, key), expected, "{component} {key}");
    }
    assert_eq!(described.library_path(), config.library_path());
    assert_eq!(described.memory_settings().unwrap().limit, config.memory_settings().unwrap().limit);
    assert_eq!(described.describe(&again), config.describe(&chosen));
}
