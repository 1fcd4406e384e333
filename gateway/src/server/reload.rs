//! Reading of the configuration while the gateway runs: at SIGHUP, and when its file or a file with
//! a key changes.
//!
//! Files are compared every few seconds, by their time and size. Kubernetes changes the files of a
//! Secret by a link to another folder, which notifications of the system do not tell reliably.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use creole::Config;

use crate::file_state::FileState;
use crate::metrics::Metrics;

/// Interval between two comparisons of the files.
const INTERVAL: Duration = Duration::from_secs(1);

/// Source of a configuration that can be read again.
pub(crate) struct ConfigSource<'s> {
    /// Files that the configuration was read from.
    pub(crate) files: Vec<FileState>,
    /// Function that reads the configuration, and returns the files that were needed.
    pub(crate) read: Box<dyn Fn() -> ConfigRead + 's>,
}

/// Configuration that was read, or the reason for which it cannot be used.
pub(crate) struct ConfigRead {
    pub(crate) config: Result<Config, String>,
    pub(crate) files: Vec<FileState>,
}

/// Reads the configuration again whenever that is due, and hands it to `replace`. If it cannot be
/// used, the configuration before stays in use.
pub(crate) async fn run(
    source: Option<ConfigSource<'_>>,
    metrics: &Metrics,
    replace: impl Fn(Config) -> Result<(), String>,
) -> Infallible {
    let loaded = Arc::new(LoadedConfig::default());
    loaded.add_gauges(metrics);
    // Without a file, SIGHUP ends the process, as it ends other programs of a terminal.
    let Some(ConfigSource { mut files, read }) = source else { return pending().await };
    let mut signal = Hangup::listen();
    loop {
        tokio::select! {
            () = signal.received() => {}
            () = changed(&files) => {}
        }
        let ConfigRead { config, files: needed } = read();
        // A configuration that is gone for a moment is looked for where it was.
        files = match needed.is_empty() {
            true => files.iter().map(FileState::now).collect(),
            false => needed,
        };
        match config.and_then(&replace) {
            Ok(()) => {
                loaded.take();
                tracing::info!("the configuration was loaded again");
            }
            Err(reason) => {
                loaded.is_behind.store(true, Ordering::Relaxed);
                tracing::error!("the configuration before stays in use: {reason}");
            }
        }
    }
}

/// Waits until a file has changed, and then has stayed the same for one interval, so that no
/// half-written file is read.
async fn changed(files: &[FileState]) {
    let (mut known, mut is_changed) = (files.to_vec(), false);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let found: Vec<FileState> = known.iter().map(FileState::now).collect();
        match found == known {
            true if is_changed => return,
            true => {}
            false => (known, is_changed) = (found, true),
        }
    }
}

/// Facts for the metrics about the configuration in use.
struct LoadedConfig {
    /// Time at which the configuration was loaded, in seconds of Unix time.
    at: AtomicU64,
    /// True if a newer configuration could not be used.
    is_behind: AtomicBool,
}

impl Default for LoadedConfig {
    fn default() -> Self {
        Self { at: AtomicU64::new(now()), is_behind: AtomicBool::new(false) }
    }
}

impl LoadedConfig {
    fn take(&self) {
        self.at.store(now(), Ordering::Relaxed);
        self.is_behind.store(false, Ordering::Relaxed);
    }

    fn add_gauges(self: &Arc<Self>, metrics: &Metrics) {
        let loaded = Arc::clone(self);
        metrics.gauge(
            "creole_gateway_config_loaded_timestamp_seconds",
            "When the configuration in use was loaded, in seconds of Unix time",
            move || Some(loaded.at.load(Ordering::Relaxed)),
        );
        let loaded = Arc::clone(self);
        metrics.gauge(
            "creole_gateway_config_reload_failed",
            "1 if a newer configuration could not be used, so that the one before is in use",
            move || Some(u64::from(loaded.is_behind.load(Ordering::Relaxed))),
        );
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// Receiver of SIGHUP, which asks for the configuration to be read again.
struct Hangup {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangup {
    fn listen() -> Self {
        #[cfg(unix)]
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())
            .inspect_err(|error| tracing::warn!("cannot receive SIGHUP: {error}"))
            .ok();
        Self {
            #[cfg(unix)]
            signal,
        }
    }

    async fn received(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        pending().await
    }
}
