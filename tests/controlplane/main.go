// Command controlplane is four stock Kubernetes programs in one file: the first argument says which of
// etcd, kube-apiserver, kube-scheduler and kube-controller-manager to be, the rest are its own flags.
// Muster's tests and benchmarks measure themselves against it; build.py builds it, start.py starts it.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// programs maps a name to what runs it; etcd is no cobra command and gets the arguments whole.
var programs = map[string]func(arguments []string) int{
	"etcd": func(arguments []string) int {
		etcdmain.Main(arguments)
		return 0
	},
	"kube-apiserver":          component(apiserver.NewAPIServerCommand),
	"kube-scheduler":          component(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kube-controller-manager": component(manager.NewControllerManagerCommand),
}

func component(newCommand func() *cobra.Command) func([]string) int {
	return func([]string) int { return cli.Run(newCommand()) }
}

func main() {
	if len(os.Args) > 1 {
		if run, known := programs[os.Args[1]]; known {
			os.Args = os.Args[1:] // each program reads os.Args as if it had been called by its own name
			os.Exit(run(os.Args))
		}
	}
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: controlplane %s [flags]\n", strings.Join(names, "|"))
	os.Exit(2)
}
