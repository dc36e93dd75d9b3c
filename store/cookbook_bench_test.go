package store_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

// The size of the cluster in BenchmarkCookbook.
const (
	manyJobs    = 40_000 // of 25 epochs each, over 60 days
	manySamples = 10_000_000
)

// someJobs computes the values of numbered jobs. The last job ends at the end of the fortnight of
// the cookbook, so that the tables include the dates in its queries.
const someJobs = `SELECT number AS j, concat('job-', toString(number)) AS job_id, concat('net-', toString(cityHash64(number) % 5)) AS model,
	arrayElement([16, 32, 64, 128, 256], 1 + cityHash64(number, 1) % 5) AS batch, [1, 2, 4, 8][1 + cityHash64(number, 2) % 4] AS cpus,
	concat('node-', toString(cityHash64(number, 7) % 100)) AS node, concat('user-', toString(number % 17)) AS user,
	toDateTime64('2026-03-16 00:00:00', 9, 'UTC') - toIntervalSecond(5184000 - number * 129) AS submitted, submitted + toIntervalSecond(1 + cityHash64(number, 3) % 60) AS started,
	4 + (cityHash64(number, 4) % 1000) / 50. AS seconds, seconds * 25 * (0.9 + (cityHash64(number, 5) % 1000) / 2000.) AS slo
FROM numbers(%jobs%)`

// manyRows fill the tables; %some% stands for someJobs. The views fill the roll-ups.
var manyRows = []string{
	`INSERT INTO job_submitted (event_id, at, sequence, job_id, model, epochs, slo_seconds, confidence, nodes, user, decision, batch_size, cpus, predicted_seconds, predicted_accuracy, probability,
		alternatives.batch_size, alternatives.cpus, alternatives.epochs, alternatives.predicted_seconds, alternatives.predicted_accuracy, alternatives.probability, alternatives.reason)
	SELECT concat(job_id, '/0/submitted'), submitted, j * 32, job_id, model, 25, slo, 0.95, [node], user, if(j % 5 = 0, 'best_effort', 'meets_slo'), batch, cpus, seconds * 25, 0.9, 0.95 + (cityHash64(j, 6) % 50) / 1000.,
		[16, 32, 64, 128, 256], [cpus, cpus, cpus, cpus, cpus], [25, 25, 25, 25, 25], [seconds * 30, seconds * 28, seconds * 25, seconds * 24, seconds * 23], [0.95, 0.94, 0.92, 0.9, 0.88], [0.5, 0.7, 0.9, 0.95, 0.99],
		['too slow', 'too slow', 'chosen', 'less accurate', 'less accurate'] FROM (%some%)`,
	`INSERT INTO job_started (event_id, at, sequence, job_id, run, model, batch_size, cpus, epochs, training_samples, nodes, node_cores, heartbeat_seconds, user)
	SELECT concat(job_id, '/1/started'), started, j * 32 + 1, job_id, 1, model, batch, cpus, 25, 50000, [node], 16, 10, user FROM (%some%)`,
	`INSERT INTO job_epoch (event_id, at, sequence, job_id, run, model, batch_size, cpus, epochs, training_samples, nodes, epoch, duration_seconds, duration_source, node_cores, loss, accuracy, concurrent_jobs, node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes)
	SELECT concat(job_id, '/1/', toString(n)), started + toIntervalMillisecond(toUInt64(n * 1000 * seconds)), j * 32 + 1 + n, job_id, 1, model, batch, cpus, 25, 50000, [node], n, seconds * (0.9 + (cityHash64(j, n) % 200) / 1000.), 'reported', 16, 1 / n, 0.5 + n / 60,
		1 + if(j % 3 = 0, 0, (cityHash64(j, n, 1) % 30) / 10.), (cityHash64(j, n, 2) % 100) / 100., (cityHash64(j, n, 3) % 30) / 100., seconds * cpus * 0.8, 1e9 FROM (%some%) ARRAY JOIN range(1, 26) AS n`,
	`INSERT INTO job_ended (event_id, at, sequence, job_id, run, outcome, duration_seconds, startup_seconds, epochs_done, accuracy, model, batch_size, cpus, epochs, training_samples, nodes)
	SELECT concat(job_id, '/1/finished'), started + toIntervalMillisecond(toUInt64(25000 * seconds + 500)), j * 32 + 28, job_id, 1, if(j % 50 = 0, 'failed', 'finished'), seconds * 25 + 0.5, 0.5, 25, 0.9, model, batch, cpus, 25, 50000, [node] FROM (%some%) WHERE j % 2000 != 1`,
	`INSERT INTO job_advice (event_id, at, sequence, job_id, run, cause_sequence, decision, action, model, nodes, slo_seconds, elapsed_seconds, confidence, epochs_done, concurrent_jobs, processes, batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy, probability,
		alternatives.batch_size, alternatives.cpus, alternatives.epochs, alternatives.predicted_seconds, alternatives.predicted_accuracy, alternatives.probability, alternatives.reason)
	SELECT concat(job_id, '/', toString(n), '/advice'), started + toIntervalMillisecond(toUInt64(n * 1000 * seconds)), j * 32 + 1 + n, job_id, 1, j * 32 + 1 + n, 'meets_slo', 'keep', model, [node], slo, n * seconds, 0.95, n, 2, 4, batch, cpus, 25 - n, seconds * (25 - n), seconds * (25 - n) * 1.2, 0.9, 0.9,
		[16, 64, 128], [cpus, cpus, cpus], [25, 25, 25], [seconds * 30, seconds * 28, seconds * 25], [0.95, 0.94, 0.92], [0.5, 0.7, 0.9], ['too slow', 'too slow', 'chosen'] FROM (%some%) ARRAY JOIN [3, 8, 13] AS n`,
	`INSERT INTO job_risk (event_id, at, sequence, job_id, run, cause_sequence, cleared, cause, probability, confidence, predicted_seconds, left_seconds, action, batch_size)
	SELECT concat(job_id, '/9/risk'), started + toIntervalMillisecond(toUInt64(9000 * seconds)), j * 32 + 10, job_id, 1, j * 32 + 10, false, arrayElement(['slow_epochs', 'io_wait', 'neighbours', 'late_start', 'regressor'], 1 + j % 5), 0.4, 0.95, seconds * 16, seconds * 15, 'keep', 0 FROM (%some%) WHERE j % 4 = 0`,
	`INSERT INTO job_moved (event_id, at, sequence, job_id, run, cause_sequence, move, outcome, means, from_batch_size, to_batch_size, epoch, before_epoch_seconds, after_epoch_seconds, epochs_measured, gain_ratio)
	SELECT concat(job_id, '/m/', o), started + toIntervalMillisecond(toUInt64(10000 * seconds)), j * 32 + 11, job_id, 1, j * 32 + 10, 'batch_size', o, 'control', batch, batch * 2, 10, seconds, seconds * 0.85, 3, 0.75 FROM (%some%) ARRAY JOIN ['carried_out', 'kept'] AS o WHERE j % 20 = 0`,
	`INSERT INTO regressor_trained (event_id, at, sequence, target, model_digest, examples, configurations, held_out_error, fit_seconds, reason)
	SELECT concat(target, toString(number)), toDateTime64('2026-03-16 00:00:00', 9, 'UTC') - toIntervalMinute(86400 - number * 86), number * 4, target, hex(MD5(toString(number))), 600, 20, 0.05, 0.3, 'enough new epochs' FROM numbers(1000) ARRAY JOIN ['epoch_time', 'startup_time', 'accuracy'] AS target`,
	`INSERT INTO regressor_promoted (event_id, at, sequence, target, revision, model_digest, examples, configurations, held_out_error, fit_seconds, reason, decided_by)
	SELECT concat(target, toString(number)), toDateTime64('2026-03-16 00:00:00', 9, 'UTC') - toIntervalMinute(86360 - number * 86), number * 4 + 1, target, number, hex(MD5(toString(number))), 600, 20, 0.05, 0.3, 'a run has ended', 'fit' FROM numbers(1000) ARRAY JOIN ['epoch_time', 'startup_time', 'accuracy'] AS target WHERE number % 3 = 0`,
	`INSERT INTO regressor_drift (event_id, at, sequence, target, cause_sequence, model_digest, state, scope, node_type, since_at, ratio, before_ratio, jobs, message)
	SELECT toString(number), toDateTime64('2026-03-16 00:00:00', 9, 'UTC') - toIntervalMinute(86400 - number * 860) AS at, number * 40 + 2, 'epoch_time', number, hex(MD5(toString(number))), 'active', 'node_type', 'x, 2 cores', at - toIntervalMinute(60), 1.3, 1, 8, 'slow' FROM numbers(100)`,
}

const manySamplesRows = `INSERT INTO node_sample (event_id, at, sequence, node, boot_id, number, interval_seconds, cores, cpu_ratio, io_wait_ratio, load_average, memory_total_bytes, memory_available_bytes)
	SELECT concat(node, '/b/', toString(n)), toDateTime64('2026-03-16 00:00:00', 9, 'UTC') - toIntervalSecond(200000 - 2 * n), number + 1, concat('node-', toString(number % 100)) AS node, 'b', intDiv(number, 100) AS n, 2, 16,
		(cityHash64(number) % 1000) / 1000., (cityHash64(number, 1) % 100) / 1000., (cityHash64(number) % 1000) / 100., 64e9, 32e9 FROM numbers(?, ?)`

// BenchmarkCookbook runs each query of the cookbook on ten million samples and a million epochs, on
// one server and on a cluster with two shards on the same machine. It reports the 95th percentile
// of the durations, and the shortest, which other load on the machine affects least. COURIER_LONG=1
// turns it on.
func BenchmarkCookbook(b *testing.B) {
	if os.Getenv("COURIER_LONG") == "" {
		b.Skip("COURIER_LONG is not set")
	}
	b.Run("servers=1", func(b *testing.B) {
		native := storetest.Address(b)
		address := storetest.OverHTTP(b, native)
		d := storetest.Open(b, native)
		must(b, d.Migrate(b.Context()))
		keepForever(b, d)
		fillMany(b, d)
		benchmarkRecipes(b, address)
	})
	b.Run("shards=2", func(b *testing.B) {
		servers := cluster.Start(b, 1, 1)
		c := openCluster(b, bustest.New(b), servers)
		must(b, c.Migrate(b.Context()))
		for _, d := range c.Databases() {
			keepForever(b, d)
		}
		const awaitShards = "?distributed_foreground_insert=1"
		fillMany(b, storetest.Open(b, servers.URL(0, "courier")+awaitShards))
		benchmarkRecipes(b, servers.HTTPURL(b, 0, "courier"))
	})
}

// benchmarkRecipes measures each query of the cookbook.
func benchmarkRecipes(b *testing.B, address string) {
	var recipes [][]string
	for _, page := range readCookbook(b) {
		recipes = append(recipes, recipe.FindAllStringSubmatch(page, -1)...)
	}
	for _, r := range recipes {
		b.Run(strings.ReplaceAll(strings.TrimSuffix(r[1], "?"), " ", "_"), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				curl(b, address, r[2])
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[0].Microseconds())/1000, "best-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// fillMany lets the engine generate the rows.
func fillMany(b *testing.B, d *store.Database) {
	b.Helper()
	jobs := strings.ReplaceAll(someJobs, "%jobs%", strconv.Itoa(manyJobs))
	for _, statement := range manyRows {
		must(b, d.Exec(b.Context(), strings.ReplaceAll(statement, "%some%", jobs)))
	}
	const step = manySamples / 10
	for from := 0; from < manySamples; from += step {
		must(b, d.Exec(b.Context(), manySamplesRows, from, step))
	}
	if n := selectNumber(b, d, "SELECT sum(epochs) AS n FROM job_run"); n != 25*manyJobs {
		b.Fatalf("%d epochs, want %d", n, 25*manyJobs)
	}
	if n := selectNumber(b, d, "SELECT sum(samples) AS n FROM node_hour"); n != manySamples {
		b.Fatalf("%d samples, want %d", n, manySamples)
	}
}
