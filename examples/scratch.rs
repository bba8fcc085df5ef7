use std::convert::Infallible;
use std::path::Path;
use termsmith::export::*;
use termsmith::model;
#[path = "../src/export/fixture.rs"]
mod fixture;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let n: u32 = args[2].parse().unwrap();
    let kb: usize = args[3].parse().unwrap();
    let groups = (0..n).map(|i| {
        let mut g: Vec<_> = (0..3)
            .map(|a| fixture::rollout(["games", "coding", "ai_ml"][i as usize % 3], i, a, 6, 8 - (a % 2)))
            .collect();
        let mut x = u64::from(i) + 1;
        for r in &mut g {
            for o in &mut r.observations {
                *o = (0..kb * 64)
                    .map(|_| {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        format!("{x:016x}")
                    })
                    .collect();
            }
        }
        Ok::<_, Infallible>(g)
    });
    let mut options = ExportOptions::default();
    if let Some(s) = args.get(4) {
        options.bounds = termsmith::export::parquet::Bounds {
            batch: 64 << 10,
            row_group: 256 << 10,
            shard: s.parse().unwrap(),
        };
    }
    let t = std::time::Instant::now();
    let s = export(Path::new(&args[1]), groups, &options).unwrap();
    let peak = std::fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
        .find(|l| l.starts_with("VmHWM"))
        .unwrap()
        .to_owned();
    println!(
        "{peak} changed {} {:?} {:?}",
        s.changed,
        s.configs.iter().map(|c| (c.rows, c.bytes, c.files.len())).collect::<Vec<_>>(),
        t.elapsed()
    );
}
