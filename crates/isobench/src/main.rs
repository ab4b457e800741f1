//! The `isobench` command: did this change make the inference engine faster?

mod args;
mod causes;
mod commands;
mod commit_args;
mod container_args;
mod coordinator;
mod dataset_files;
mod demo;
mod design_args;
mod disk_args;
mod evidence;
mod exit;
mod facts;
mod flags;
mod images_args;
mod interrupt;
mod legacy_causes;
mod legacy_files;
mod load_args;
mod load_defaults;
mod load_live;
mod load_rows;
mod noise_args;
mod progress;
mod secrets;
mod statistics;
mod terminal;
mod wheels_args;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Arguments, Command};
use exit::{CommandError, Exit};
use flags::FlagRow;
use isobench_runner::container;
use secrets::Secrets;
use terminal::{Status, Terminal};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(deadline_s) = container::init::asked(&words) {
        return container::init::run(deadline_s).into();
    }
    let secrets = Secrets::of(&words, |name| std::env::var(name).ok());
    let flags::Understood { words, rows } = match flags::understand(words) {
        Ok(understood) => understood,
        Err(error) => return refused(&error, &secrets),
    };
    let rows: Vec<FlagRow> = rows.into_iter().map(|row| row.map(|text| secrets.hide(text))).collect();
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors, and go to standard output.
            if error.use_stderr() && !secrets.is_empty() {
                terminal_of_errors().error(secrets.hide(&error.render().to_string()).trim_end());
            } else {
                let _ = error.print();
            }
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Success.into() };
        }
    };
    if matches!(arguments.command, Command::Guard) {
        return isobench_runner::host::guard::run().into();
    }
    let status = if arguments.quiet { Status::Quiet } else { Status::Shown };
    let context = commands::Context { terminal: Terminal::new(arguments.color, status), json: arguments.json };
    match run(arguments.command, &rows, context) {
        Ok(_) if context.terminal.has_lost_data() => {
            context.terminal.error("error: standard output can't be written: what was asked for is lost");
            Exit::Machine.into()
        }
        Ok(exit) => exit.into(),
        Err(error) => {
            context.terminal.error(&secrets.hide(&error.text()));
            error.exit.into()
        }
    }
}

/// Says which words of the command line can't be understood or done.
fn refused(error: &flags::UnderstandError, secrets: &Secrets) -> ExitCode {
    let terminal = terminal_of_errors();
    for problem in &error.problems {
        terminal.error(&secrets.hide(&format!("error: {problem}")));
    }
    terminal
        .error("  hint: `--explain-flags` shows how each word is understood, `isobench load --help` lists all flags");
    Exit::Usage.into()
}

/// Returns the terminal for errors before it is known which one is asked for.
fn terminal_of_errors() -> Terminal {
    Terminal::new(terminal::ColorChoice::Auto, Status::Shown)
}

fn run(command: Command, rows: &[FlagRow], context: commands::Context) -> Result<Exit, CommandError> {
    match command {
        Command::Demo(args) => commands::demo::run(&args, context),
        Command::Plan(args) => commands::plan::run(&args, context),
        Command::Lint(args) => commands::lint::run(&args, context),
        Command::Explain(args) => commands::explain::run(&args, context),
        Command::Run(args) => commands::run::run(&args, context),
        Command::Block(args) => commands::block::run(&args, context),
        Command::Noise(args) => commands::noise::run(&args, context),
        Command::Judge(args) => commands::judge::run(&args, context),
        Command::Report(args) => commands::report::run(&args, context),
        Command::Load(args) if args.explain_flags => commands::load_explain::run(rows, context),
        Command::Load(args) => commands::load::run(&args, context),
        Command::Images(args) => commands::images::run(&args, context),
        Command::Environments(args) => commands::environments::run(&args, context),
        Command::Doctor => commands::doctor::run(context),
        Command::Runs(args) => commands::runs::run(&args, context),
        Command::Compare(args) => commands::compare::run(&args, context),
        Command::Confirm(args) => commands::confirm::run(&args, context),
        Command::Verify(args) => commands::verify::run(&args, context),
        Command::Parse(args) => commands::parse::run(&args, context),
        Command::Classify(args) => commands::classify::run(&args, context),
        Command::Import(args) => commands::import::run(&args, context),
        Command::Export(args) => commands::export::run(&args, context),
        Command::Wheels(args) => commands::wheels::run(&args, context),
        Command::Guard => Ok(Exit::Success),
    }
}
