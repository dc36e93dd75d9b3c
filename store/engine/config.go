package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"
)

// loopback is the only address on which the engine listens.
const loopback = "127.0.0.1"

// The users of the engine, besides the default user of its console.
const (
	userCourier = "courier"
	userReader  = "reader"
)

// consoleQuota is the name of the quota of the default user. Package store recognizes it in errors.
const consoleQuota = "courier_console"

type settings struct {
	Store, Run      string // absolute directories
	HTTPPort        int    // 0: the system chooses
	TCPPort         int
	Nonce           string // display name of the engine, to recognize its answer
	CourierPassword string
	ReaderPassword  string
	MemoryBytes     int64 // 0: a quarter of the memory that the engine detects
}

func (s settings) configPath() string { return filepath.Join(s.Run, "config.xml") }
func (s settings) usersPath() string  { return filepath.Join(s.Run, "users.xml") }
func (s settings) portsPath() string  { return filepath.Join(s.Run, "ports.tsv") }
func (s settings) hostLog() string    { return filepath.Join(s.Run, "host.log") }

// arguments returns the command line of the engine. It includes the address and the ports, because
// the library does not read them from the configuration.
func arguments(s settings) []string {
	return []string{
		"--config-file=" + s.configPath(),
		"--path=" + s.Store,
		"--listen_host=" + loopback,
		fmt.Sprintf("--http_port=%d", s.HTTPPort),
		fmt.Sprintf("--tcp_port=%d", s.TCPPort),
		"--interactive",
		"--log-level=warning",
		"--disable_suggestion",
		"--progress=off",
		"--progress-table=off",
		"--history_file=/dev/null",
		"--highlight=0",
		"--query=SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; " +
			"SELECT getServerPort('http_port'), getServerPort('tcp_port') INTO OUTFILE " +
			quote(s.portsPath()) + " TRUNCATE FORMAT TSV",
	}
}

func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

func render(t *template.Template, s settings) ([]byte, error) {
	var b strings.Builder
	err := t.Execute(&b, s)
	return []byte(b.String()), err
}

// passwordHash hashes a password. Passwords are long and random, so a fast hash is sufficient.
func passwordHash(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// courierGrants returns the privileges of the services' user. It lists table engines and CREATE
// statements by name: with all of them a client could read files of the machine by ENGINE=File,
// and connect to any address by a dictionary.
func courierGrants() []string {
	grants := []string{
		"GRANT SELECT, INSERT, ALTER, DROP, TRUNCATE, OPTIMIZE, SHOW, KILL QUERY, " +
			"CREATE DATABASE, CREATE TABLE, CREATE VIEW, CREATE TEMPORARY TABLE, " +
			"CREATE FUNCTION, SYSTEM FLUSH, SYSTEM MERGES, SYSTEM TTL MERGES, SYSTEM VIEWS ON *.*",
	}
	for _, engine := range []string{
		"MergeTree", "ReplacingMergeTree", "SummingMergeTree", "AggregatingMergeTree",
		"CollapsingMergeTree", "VersionedCollapsingMergeTree", "CoalescingMergeTree",
		"Null", "Memory", "Buffer", "View", "MaterializedView", "Join", "Set", "Log", "Merge",
	} {
		grants = append(grants, "GRANT TABLE ENGINE ON "+engine)
	}
	return grants
}

func escapeXML(value any) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(fmt.Sprint(value)))
	return b.String(), err
}

func mustParse(name, text string) *template.Template {
	functions := template.FuncMap{"xml": escapeXML, "hash": passwordHash, "grants": courierGrants}
	return template.Must(template.New(name).Funcs(functions).Parse(text))
}

// configTemplate is config.xml. The pools are small because Courier shares the machine with training
// jobs. The thresholds of merge_tree must not exceed the size of the pool.
var configTemplate = mustParse("config.xml", `<clickhouse>
  <path>{{xml .Store}}</path>
  <users_config>{{xml .Run}}/users.xml</users_config>
  <display_name>{{xml .Nonce}}</display_name>
  <listen_host>`+loopback+`</listen_host>
  <http_port>{{.HTTPPort}}</http_port>
  <tcp_port>{{.TCPPort}}</tcp_port>
  <logger>
    <level>warning</level>
    <log>{{xml .Run}}/engine.log</log>
    <errorlog>{{xml .Run}}/engine.err.log</errorlog>
    <console>0</console>
    <size>20M</size>
    <count>3</count>
  </logger>
{{- if .MemoryBytes}}
  <max_server_memory_usage>{{.MemoryBytes}}</max_server_memory_usage>
{{- else}}
  <max_server_memory_usage_to_ram_ratio>0.25</max_server_memory_usage_to_ram_ratio>
{{- end}}
  <mark_cache_size>268435456</mark_cache_size>
  <background_pool_size>4</background_pool_size>
  <merge_tree>
    <number_of_free_entries_in_pool_to_execute_mutation>2</number_of_free_entries_in_pool_to_execute_mutation>
    <number_of_free_entries_in_pool_to_lower_max_size_of_merge>2</number_of_free_entries_in_pool_to_lower_max_size_of_merge>
    <number_of_free_entries_in_pool_to_execute_optimize_entire_partition>2</number_of_free_entries_in_pool_to_execute_optimize_entire_partition>
  </merge_tree>
</clickhouse>
`)

// The console of the library logs in as the user default, from this machine and without a
// password, so that user must exist, and any local program can use it. Its quota allows exactly
// the two statements that start the listeners: a third one, such as one that stops them, is
// rejected. (A constant SELECT does not count.) The interval is the longest that the engine
// accepts, 2^31-1 seconds.
//
// The constraints of house prevent tables on custom disks, which could connect to other machines. The reader
// may raise the time limit, because clickhouse-go, and with it Grafana, requests a little more than its own
// deadline; zero, which would mean no limit, is not allowed. Half a GiB leaves memory for the services;
// groups and sorts larger than half of it spill to disk.
//
// Passwords are stored as hashes, which do not allow a login.
var usersTemplate = mustParse("users.xml", `<clickhouse>
  <profiles>
    <default/>
    <house>
      <constraints>
        <merge_tree_disk><const/></merge_tree_disk>
        <merge_tree_storage_policy><const/></merge_tree_storage_policy>
        <merge_tree_table_disk><const/></merge_tree_table_disk>
      </constraints>
    </house>
    <people>
      <profile>house</profile>
      <max_execution_time>60</max_execution_time>
      <max_memory_usage>536870912</max_memory_usage>
      <cancel_http_readonly_queries_on_client_close>1</cancel_http_readonly_queries_on_client_close>
      <readonly>2</readonly>
      <constraints>
        <max_execution_time><min>1</min><max>600</max></max_execution_time>
        <max_memory_usage><min>1</min><max>536870912</max></max_memory_usage>
      </constraints>
    </people>
  </profiles>
  <quotas>
    <default/>
    <`+consoleQuota+`>
      <interval><duration>2147483647</duration><queries>2</queries></interval>
    </`+consoleQuota+`>
  </quotas>
  <users>
    <default>
      <password></password>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>default</profile>
      <quota>`+consoleQuota+`</quota>
      <grants><query>GRANT SYSTEM LISTEN ON *.*</query></grants>
    </default>
    <`+userCourier+`>
      <password_sha256_hex>{{hash .CourierPassword}}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>house</profile>
      <quota>default</quota>
      <grants>
{{- range grants}}
        <query>{{xml .}}</query>
{{- end}}
      </grants>
    </`+userCourier+`>
    <`+userReader+`>
      <password_sha256_hex>{{hash .ReaderPassword}}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>people</profile>
      <quota>default</quota>
      <grants><query>GRANT SELECT ON `+"`"+database+"`"+`.*</query></grants>
    </`+userReader+`>
  </users>
</clickhouse>
`)
