// Package fit resizes distributed trainings: it fits their workers, cores and parameter servers to
// what limits their speed.
//
// The idea is that of NEARCHUS (Tariq et al., NOMS 2024): watch a job, find its bottleneck, change
// its resources. The rule is Courier's own. A model of the step time, which is learned from the
// job's own steps, prices every neighbouring shape, and the best lower bound of the gain wins. The
// bottleneck only adds candidates and explains a move.
//
// Plan is a pure function. The caller keeps the ResizeRecord of each job between two calls, collects
// step reports since the last change of the job's shape, and carries out the moves. Plan returns at
// most one move per job and window, never a shape with less than one worker or core, and never
// takes more cores than are free. It promises nothing about the order of calls: a job without a
// stable window is left alone.
package fit
