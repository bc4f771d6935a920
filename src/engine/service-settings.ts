/** What decides how a Podman service of our own is set up. */
export interface ServiceFacts {
  /** Whether the caller has a containers.conf. It is used as it is: ours would replace it, not add to it. */
  readonly configured: boolean;
  /** Only version 2 of control groups, and not some of each. */
  readonly unifiedCgroups: boolean;
  readonly systemd: boolean;
  readonly crun: boolean;
  readonly runc: boolean;
  /** Hard limits of this process, or null where there is none: nobody without a capability can raise them. */
  readonly openFiles: number | null;
  readonly processes: number | null;
}

/** The containers.conf for the service, or null where the caller's own stands. Pure. */
export function renderServiceSettings(facts: ServiceFacts): string | null {
  if (facts.configured) return null;
  const ulimits = [
    ...(facts.openFiles === null ? [] : [`nofile=${facts.openFiles}:${facts.openFiles}`]),
    ...(facts.processes === null ? [] : [`nproc=${facts.processes}:${facts.processes}`]),
  ];
  // crun before 1.9 refuses control groups that are not all of version 2.
  const wantsRunc = facts.runc && (!facts.unifiedCgroups || !facts.crun);
  const lines = [
    "# Written by Podbot for its own Podman service.",
    "[containers]",
    ...(ulimits.length === 0 ? [] : [`default_ulimits = ${JSON.stringify(ulimits)}`]),
    "[engine]",
    ...(wantsRunc ? ['runtime = "runc"'] : []),
    // Both ask systemd otherwise, and fail or wait where it is not there.
    ...(facts.systemd ? [] : ['cgroup_manager = "cgroupfs"', 'events_logger = "file"']),
  ];
  return `${lines.join("\n")}\n`;
}
