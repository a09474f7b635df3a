"""Long answers that hardly change: the configuration, the partitions, the statistics."""

from slurmtop.demo.nodes import CPUS, DEFAULT_PARTITION, GPUS, MAX_TIME_S, MEMORY_MIB, PARTITIONS
from slurmtop.demo.text import fold_hosts, padded_secs
from slurmtop.demo.values import View
from slurmtop.demo.world import MIN_JOB_AGE_S

UP_SINCE = -40 * 86_400
"""When the controller was started, in seconds of the demo."""

CONFIG = """\
Configuration data as of @NOW@
AccountingStorageBackupHost = (null)
AccountingStorageEnforce = associations,limits,qos
AccountingStorageHost   = login1
AccountingStorageExternalHost = (null)
AccountingStorageParameters = (null)
AccountingStoragePort   = 6819
AccountingStorageTRES   = cpu,mem,energy,node,billing,fs/disk,vmem,pages,gres/gpu,gres/gpu:h100
AccountingStorageType   = accounting_storage/slurmdbd
AccountingStorageUser   = N/A
AccountingStoreFlags    = job_comment,job_env,job_script
AcctGatherEnergyType    = (null)
AcctGatherFilesystemType = (null)
AcctGatherInterconnectType = (null)
AcctGatherNodeFreq      = 0 sec
AcctGatherProfileType   = (null)
AllowSpecResourcesUsage = no
AuthAltTypes            = (null)
AuthAltParameters       = (null)
AuthInfo                = (null)
AuthType                = auth/munge
BatchStartTimeout       = 10 sec
BcastExclude            = /lib,/usr/lib,/lib64,/usr/lib64
BcastParameters         = (null)
BOOT_TIME               = @BOOT@
BurstBufferType         = (null)
CertmgrParameters       = (null)
CertmgrType             = (null)
CliFilterPlugins        = (null)
ClusterName             = aurora
CommunicationParameters = (null)
CompleteWait            = 0 sec
CpuFreqDef              = Unknown
CpuFreqGovernors        = OnDemand,Performance,UserSpace
CredType                = cred/munge
DataParserParameters    = (null)
DebugFlags              = (null)
DefMemPerCPU            = 15040
DependencyParameters    = (null)
DisableRootJobs         = no
EioTimeout              = 60
EnforcePartLimits       = NO
EpilogMsgTime           = 2000 usec
FairShareDampeningFactor = 1
FederationParameters    = (null)
FirstJobId              = 1
GetEnvTimeout           = 2 sec
GresTypes               = gpu
GpuFreqDef              = (null)
GroupUpdateForce        = 1
GroupUpdateTime         = 600 sec
HASH_VAL                = Match
HashPlugin              = hash/k12
HealthCheckInterval     = 0 sec
HealthCheckNodeState    = ANY
HealthCheckProgram      = (null)
InactiveLimit           = 0 sec
InteractiveStepOptions  = --interactive --preserve-env --pty $SHELL
JobAcctGatherFrequency  = 30
JobAcctGatherType       = jobacct_gather/cgroup
JobAcctGatherParams     = (null)
JobCompHost             = localhost
JobCompLoc              = (null)
JobCompParams           = (null)
JobCompPort             = 0
JobCompType             = (null)
JobCompUser             = root
JobContainerType        = (null)
JobDefaults             = (null)
JobFileAppend           = 0
JobRequeue              = 1
JobSubmitPlugins        = (null)
KillOnBadExit           = 0
KillWait                = 30 sec
LaunchParameters        = (null)
Licenses                = (null)
LogTimeFormat           = iso8601_ms
MailDomain              = (null)
MailProg                = /bin/mail
MaxArraySize            = 1001
MaxBatchRequeue         = 5
MaxDBDMsgs              = 20016
MaxJobCount             = 100000
MaxJobId                = 67043328
MaxMemPerNode           = UNLIMITED
MaxNodeCount            = 8
MaxStepCount            = 40000
MaxTasksPerNode         = 512
MCSPlugin               = (null)
MCSParameters           = (null)
MessageTimeout          = 10 sec
MinJobAge               = @MINJOBAGE@ sec
MpiDefault              = (null)
MpiParams               = (null)
MULTIPLE_SLURMD         = no
NEXT_JOB_ID             = @NEXT@
NodeFeaturesPlugins     = (null)
OverTimeLimit           = 0 min
PluginDir               = /usr/lib/x86_64-linux-gnu/slurm-wlm
PlugStackConfig         = (null)
PreemptMode             = OFF
PreemptParameters       = (null)
PreemptType             = (null)
PreemptExemptTime       = 00:00:00
PrEpParameters          = (null)
PrEpPlugins             = prep/script
PriorityParameters      = (null)
PrioritySiteFactorParameters = (null)
PrioritySiteFactorPlugin = (null)
PriorityDecayHalfLife   = 7-00:00:00
PriorityCalcPeriod      = 00:05:00
PriorityFavorSmall      = no
PriorityFlags           = @NOTHING@
PriorityMaxAge          = 7-00:00:00
PriorityType            = priority/multifactor
PriorityUsageResetPeriod = NONE
PriorityWeightAge       = 1000
PriorityWeightAssoc     = 0
PriorityWeightFairShare = 0
PriorityWeightJobSize   = 0
PriorityWeightPartition = 0
PriorityWeightQOS       = 0
PriorityWeightTRES      = (null)
PrivateData             = none
ProctrackType           = proctrack/cgroup
PrologEpilogTimeout     = 65534
PrologFlags             = (null)
PropagatePrioProcess    = 0
PropagateResourceLimits = ALL
PropagateResourceLimitsExcept = (null)
RebootProgram           = (null)
ReconfigFlags           = (null)
RequeueExit             = (null)
RequeueExitHold         = (null)
ResumeFailProgram       = (null)
ResumeProgram           = (null)
ResumeRate              = 300 nodes/min
ResumeTimeout           = 60 sec
ResvEpilog              = (null)
ResvOverRun             = 0 min
ResvProlog              = (null)
ReturnToService         = 2
SchedulerParameters     = (null)
SchedulerTimeSlice      = 30 sec
SchedulerType           = sched/backfill
ScronParameters         = (null)
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
SlurmUser               = slurm(64030)
SlurmctldAddr           = (null)
SlurmctldDebug          = info
SlurmctldHost[0]        = login1(10.40.0.1)
SlurmctldLogFile        = /var/log/slurm/slurmctld.log
SlurmctldPort           = 6817
SlurmctldSyslogDebug    = (null)
SlurmctldPrimaryOffProg = (null)
SlurmctldPrimaryOnProg  = (null)
SlurmctldTimeout        = 120 sec
SlurmctldParameters     = (null)
SlurmdDebug             = info
SlurmdLogFile           = /var/log/slurm/slurmd.log
SlurmdParameters        = (null)
SlurmdPidFile           = /run/slurm/slurmd.pid
SlurmdPort              = 6818
SlurmdSpoolDir          = /var/spool/slurmd
SlurmdSyslogDebug       = (null)
SlurmdTimeout           = 300 sec
SlurmdUser              = root(0)
SlurmSchedLogFile       = (null)
SlurmSchedLogLevel      = 0
SlurmctldPidFile        = /run/slurm/slurmctld.pid
SLURM_CONF              = /etc/slurm/slurm.conf
SLURM_VERSION           = 24.11.5
SrunEpilog              = (null)
SrunPortRange           = 0-0
SrunProlog              = (null)
StateSaveLocation       = /var/spool/slurmctld
SuspendExcNodes         = (null)
SuspendExcParts         = (null)
SuspendExcStates        = (null)
SuspendProgram          = (null)
SuspendRate             = 60 nodes/min
SuspendTime             = INFINITE
SuspendTimeout          = 30 sec
SwitchParameters        = (null)
SwitchType              = (null)
TaskEpilog              = (null)
TaskPlugin              = task/affinity,task/cgroup
TaskPluginParam         = (null type)
TaskProlog              = (null)
TCPTimeout              = 2 sec
TLSParameters           = (null)
TLSType                 = tls/none
TmpFS                   = /tmp
TopologyParam           = (null)
TopologyPlugin          = topology/default
TrackWCKey              = no
TreeWidth               = 16
UsePam                  = no
UnkillableStepProgram   = (null)
UnkillableStepTimeout   = 60 sec
VSizeFactor             = 0 percent
WaitTime                = 0 sec
X11Parameters           = (null)

MPI Plugins Configuration:
PMIxCliTmpDirBase       = (null)
PMIxCollFence           = (null)
PMIxDebug               = 0
PMIxDirectConn          = yes
PMIxDirectConnEarly     = no
PMIxDirectConnUCX       = no
PMIxDirectSameArch      = no
PMIxEnv                 = (null)
PMIxFenceBarrier        = no
PMIxNetDevicesUCX       = (null)
PMIxTimeout             = 300
PMIxTlsUCX              = (null)

Slurmctld(primary) at login1 is UP
"""


def config_text(view: View) -> str:
    """``scontrol show config``."""
    return (
        CONFIG.replace("@NOTHING@", "")
        .replace("@NOW@", view.iso(view.t))
        .replace("@BOOT@", view.iso(UP_SINCE))
        .replace("@MINJOBAGE@", str(MIN_JOB_AGE_S))
        .replace("@NEXT@", str(view.world.next_id))
    )


def partition_text(view: View, name: str, *, one_line: bool) -> str:
    """One block of ``scontrol show partition``."""
    nodes = PARTITIONS[name]
    count = len(nodes)
    lines = [
        f"PartitionName={name}",
        "AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL",
        f"AllocNodes=ALL Default={'YES' if name == DEFAULT_PARTITION else 'NO'} QoS=N/A",
        "DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO ExclusiveTopo=NO GraceTime=0"
        " Hidden=NO",
        f"MaxNodes=UNLIMITED MaxTime={padded_secs(MAX_TIME_S[name])} MinNodes=0 LLN=NO"
        " MaxCPUsPerNode=UNLIMITED MaxCPUsPerSocket=UNLIMITED",
        "NodeSets=ALL",
        f"Nodes={fold_hosts(nodes)}",
        "PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
        "OverTimeLimit=NONE PreemptMode=OFF",
        f"State=UP TotalCPUs={CPUS * count} TotalNodes={count} SelectTypeParameters=NONE",
        "JobDefaults=(null)",
        "DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
        f"TRES=cpu={CPUS * count},mem={MEMORY_MIB * count // 1024}G,node={count},"
        f"billing={CPUS * count},gres/gpu={GPUS * count},gres/gpu:h100={GPUS * count}",
    ]
    return " ".join(lines) + "\n" if one_line else "\n   ".join(lines) + "\n\n"


def sdiag_text(view: View, calls: dict[str, int]) -> str:
    """``sdiag``, with the calls of this session as the statistics of its RPCs."""
    stamp = f"{view.when(view.t):%a %b %d %H:%M:%S %Y} ({int(view.when(view.t).timestamp())})"
    since = view.when(UP_SINCE)
    began = f"{since:%a %b %d %H:%M:%S %Y} ({int(since.timestamp())})"
    jobs = list(view.world.remembered())
    line = "*" * 55
    head = [
        line,
        f"sdiag output at {stamp}",
        f"Data since      {began}",
        line,
        "Server thread count:  1",
        "RPC queue enabled:    0",
        "Agent queue size:     0",
        "Agent count:          0",
        "Agent thread count:   0",
        "DBD Agent queue size: 0",
        "",
        f"Jobs submitted: {view.world.next_id}",
        f"Jobs started:   {sum(len(job.runs) for job in jobs)}",
        f"Jobs completed: {sum(job.state == 'COMPLETED' for job in jobs)}",
        f"Jobs canceled:  {sum(job.state == 'CANCELLED' for job in jobs)}",
        f"Jobs failed:    {sum(job.state == 'FAILED' for job in jobs)}",
        "",
        f"Job states ts:  {stamp}",
        f"Jobs pending:   {sum(job.pending for job in jobs)}",
        f"Jobs running:   {sum(job.running for job in jobs)}",
        "",
        "Remote Procedure Call statistics by message type",
    ]
    number = {name: 2_001 + at for at, name in enumerate(sorted(calls))}
    head += [
        f"\t{name:<40}({number[name]:5}) count:{count:<6} ave_time:240    total_time:{count * 240}"
        for name, count in sorted(calls.items(), key=lambda item: -item[1])
    ]
    head += ["", "Pending RPC statistics", "\tNo pending RPCs"]
    return "\n".join(head) + "\n"
