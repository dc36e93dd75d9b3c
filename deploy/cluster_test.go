package deploy_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// composeCluster reads docker-compose.cluster.yml with the defaults of its variables.
func composeCluster(t *testing.T) composition {
	t.Helper()
	var c composition
	text := variable.ReplaceAllString(read(t, "docker-compose.cluster.yml"), "$1")
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// clusterConfig contains the fields of cluster.xml and keeper.xml that the tests use.
type clusterConfig struct {
	Shards []struct {
		Replicas []struct {
			Host string `xml:"host"`
			Port int    `xml:"port"`
		} `xml:"replica"`
	} `xml:"remote_servers>main>shard"`
	Keepers []struct {
		Host string `xml:"host"`
		Port int    `xml:"port"`
	} `xml:"zookeeper>node"`
	KeeperPort int `xml:"keeper_server>tcp_port"`
	HTTPPort   int `xml:"keeper_server>http_control>port"`
	Raft       []struct {
		ID   string `xml:"id"`
		Host string `xml:"hostname"`
	} `xml:"keeper_server>raft_configuration>server"`
}

func readClusterConfig(t *testing.T, file string) (c clusterConfig) {
	t.Helper()
	if err := xml.Unmarshal([]byte(read(t, "deploy/clickhouse/"+file)), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Each replica of cluster.xml is a service that knows its shard, its replica and its name.
func TestComposeCluster_ServersAreThoseOfTheConfiguration(t *testing.T) {
	c, config := composeCluster(t), readClusterConfig(t, "cluster.xml")
	got := map[string]string{}
	for name, s := range c.Services {
		if strings.HasPrefix(name, "clickhouse") {
			e := s.Environment
			got[e["COURIER_CLICKHOUSE_HOST"]] = e["COURIER_CLICKHOUSE_SHARD"] + "/" + e["COURIER_CLICKHOUSE_REPLICA"]
			if e["COURIER_CLICKHOUSE_HOST"] != name {
				t.Errorf("%s says that its host is %q", name, e["COURIER_CLICKHOUSE_HOST"])
			}
		}
	}
	want := map[string]string{}
	for i, s := range config.Shards {
		for k, r := range s.Replicas {
			want[r.Host] = fmt.Sprintf("%d/%d", i+1, k+1)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 4 {
		t.Errorf("shard and replica by host (-cluster.xml +compose):\n%s", diff)
	}
	if cluster := c.Services["store"].Environment["COURIER_CLICKHOUSE_CLUSTER"]; cluster != "main" {
		t.Errorf("the store writes to the cluster %q, want main", cluster)
	}
}

// Each Keeper of keeper.xml is a service with its number, and the servers use its port.
func TestComposeCluster_KeepersAreThoseOfTheConfiguration(t *testing.T) {
	c, keeper := composeCluster(t), readClusterConfig(t, "keeper.xml")
	var hosts []string
	for _, s := range keeper.Raft {
		hosts = append(hosts, s.Host)
		service := c.Services[s.Host]
		if service == nil || service.Environment["COURIER_KEEPER_ID"] != s.ID {
			t.Errorf("Keeper %s has no service %s with this number", s.ID, s.Host)
			continue
		}
		ready := fmt.Sprint(":", keeper.HTTPPort, "/ready")
		if test := service.Healthcheck.Test; !strings.Contains(test[len(test)-1], ready) {
			t.Errorf("health check of %s = %q, want port %d", s.Host, test, keeper.HTTPPort)
		}
	}
	for _, node := range readClusterConfig(t, "cluster.xml").Keepers {
		if !slices.Contains(hosts, node.Host) || node.Port != keeper.KeeperPort {
			t.Errorf("the servers use %s:%d, want one of %v with port %d", node.Host, node.Port, hosts,
				keeper.KeeperPort)
		}
	}
	if len(hosts) != 3 {
		t.Errorf("%d Keepers, want 3", len(hosts))
	}
}

// The containers have limits, health checks, the release of the single server, every variable of
// their configuration, and files and volumes that exist.
func TestComposeCluster_ContainersAreComplete(t *testing.T) {
	single, c := compose(t), composeCluster(t)
	release := strings.TrimPrefix(single.Services["clickhouse"].Image, "clickhouse/clickhouse-server:")
	for name, s := range c.Services {
		base := single.Services[name]
		if base == nil {
			image := "clickhouse/clickhouse-server:" + release
			if strings.HasPrefix(name, "keeper") {
				image = "clickhouse/clickhouse-keeper:" + release
			}
			if s.Image != image || s.Memory == "" || s.CPUs <= 0 || s.Healthcheck == nil ||
				s.Restart != "unless-stopped" || len(s.Ports) > 0 {
				t.Errorf("%s: %+v, want the image %s with limits, a health check and no ports", name, s, image)
			}
			base = &service{}
		}
		for other, d := range s.DependsOn {
			if c.Services[other] == nil || d.Condition != "service_healthy" {
				t.Errorf("%s waits for %s to be %q", name, other, d.Condition)
			}
		}
		for _, v := range slices.Concat(base.Volumes, s.Volumes) {
			source, target, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(source, ".") {
				_, isDeclared := c.Volumes[source]
				if _, isBase := single.Volumes[source]; !isDeclared && !isBase {
					t.Errorf("%s: volume %s is not declared", name, source)
				}
				continue
			}
			if _, err := os.Stat(filepath.Join(root, source)); err != nil || !strings.HasSuffix(target, ":ro") {
				t.Errorf("%s mounts %s: want a file of the repository, read-only (%v)", name, v, err)
				continue
			}
			for _, m := range regexp.MustCompile(`from_env="(\w+)"`).FindAllStringSubmatch(read(t, source), -1) {
				if s.Environment[m[1]] == "" && base.Environment[m[1]] == "" {
					t.Errorf("%s mounts %s, but has no variable %s", name, source, m[1])
				}
			}
		}
	}
	for name := range c.Volumes {
		if !strings.Contains(read(t, "docker-compose.cluster.yml"), "- "+name+":") {
			t.Errorf("volume %s is not used", name)
		}
	}
}

// On a cluster the store needs more rights, and keeps those of a single server.
func TestComposeCluster_GrantsExtendThoseOfOneServer(t *testing.T) {
	one, all := readUsers(t, "deploy/clickhouse/users.xml"), readUsers(t, "deploy/clickhouse/cluster-users.xml")
	n := len(one.CourierGrants)
	if len(all.CourierGrants) <= n {
		t.Fatalf("%d grants, want more than the %d of one server", len(all.CourierGrants), n)
	}
	if diff := cmp.Diff(one.CourierGrants, all.CourierGrants[:n]); diff != "" {
		t.Errorf("grants of courier (-one server +cluster):\n%s", diff)
	}
	for _, g := range one.ReaderGrants {
		if !slices.Contains(all.ReaderGrants, g) {
			t.Errorf("reader lacks %q", g)
		}
	}
}

// The Kubernetes example runs the same release, and mounts the files and passwords that its page
// tells to create.
func TestKubernetesCluster_MatchesCompose(t *testing.T) {
	const file = "deploy/kubernetes/clickhouse-cluster/clickhouse.yaml"
	text, page := read(t, file), read(t, "deploy/kubernetes/README.md")
	release := strings.TrimPrefix(compose(t).Services["clickhouse"].Image, "clickhouse/clickhouse-server:")
	images := regexp.MustCompile(`image: (\S+)`).FindAllStringSubmatch(text, -1)
	if len(images) != 2 {
		t.Errorf("images %v, want a server and a Keeper", images)
	}
	for _, m := range images {
		if !strings.HasSuffix(m[1], ":"+release) {
			t.Errorf("image %s, want the release %s", m[1], release)
		}
	}
	for _, m := range regexp.MustCompile(`subPath: (\S+?)}`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(page, "--from-file=deploy/clickhouse/"+m[1]) {
			t.Errorf("the page does not put %s into the config map", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`key: (\w+)}`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(page, "--from-literal="+m[1]+"=") {
			t.Errorf("the page does not put the password of %s into the secret", m[1])
		}
	}
	documents := yaml.NewDecoder(strings.NewReader(text))
	kinds := 0
	for {
		var m struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Spec     struct {
				Configuration struct {
					Zookeeper struct{ Nodes []struct{ Host string } }
					Clusters  []struct {
						Name   string
						Layout struct {
							Shards   int `yaml:"shardsCount"`
							Replicas int `yaml:"replicasCount"`
						}
					}
				}
			}
		}
		err := documents.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		kinds++
		c := m.Spec.Configuration
		layout := c.Clusters[0].Layout
		isKeeper := m.Kind == "ClickHouseKeeperInstallation" && layout.Replicas == 3
		isServer := m.Kind == "ClickHouseInstallation" && layout.Shards == 2 && layout.Replicas == 2 &&
			len(c.Zookeeper.Nodes) == 1 && c.Zookeeper.Nodes[0].Host == "keeper-"+m.Metadata.Name
		if !isKeeper && !isServer || m.Metadata.Namespace != "clickhouse" || c.Clusters[0].Name != "main" {
			t.Errorf("%s %s/%s: %+v", m.Kind, m.Metadata.Namespace, m.Metadata.Name, c)
		}
	}
	if kinds != 2 {
		t.Errorf("%d objects, want 2", kinds)
	}
}
