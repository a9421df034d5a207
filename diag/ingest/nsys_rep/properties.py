"""Names of a host's properties: a report holds their numbers, an export names and numbers (`nameEnum`).

Source: exports of 2021.1 to 2026.2, and what nsys 2022.4 writes for a report with every number from 0 to 999.
"""

from __future__ import annotations

NICS = 910

_FROM = {
    1: """
        CpuCores CpuSpeedMhz CpuArchitecture CpuMinSpeedMhz SupportedABIs Supported32BitABIs Supported64BitABIs
        SupportedABI1 SupportedABI2 LogicalCpuInfo CNTFRQMHz EventsTimestampAndClockMonotonicRawDiffNs CpuDescription
        CpuInfo
    """,
    100: "Obsolete100 CpuEmcSpeedMhz CpuEmcMinSpeedMhz MemoryBusWidth",
    150: "McChannels deprecated_McCountersAllowed deprecated_EmcCountersAllowed SupportsXmcClients",
    170: "TargetInstallDir DaemonLockFilePath TargetTempDir InjectionFilesStoragePath",
    200: "GpuCores GpuSpeedMhz GpuMinSpeedMhz HasDiscreteGpu GpuDescriptions NvDriverVersion",
    251: "CpuPower GpuPower DramPower",
    300: "ScreenResolutionX ScreenResolutionY ScreenDensityPpi",
    400: "CameraResolutionX CameraResolutionY",
    500: """
        Vendor DeviceBrand DeviceManufacturer DeviceModel DevicePlatform IsTegraBasedDevice IsX86BasedDevice
        IsQNXDevice IsSBSADevice
    """,
    600: """
        HardwarePlatform SoftwarePlatform BuildVersion OpenGLVersion BuildId OsDescription SoftwarePlatformVariant
        WideProcessId SoftwarePlatformBase GCID DeviceEnvironment CudaDriverVersion
        DeprecatedCudaDriverVersionSupported DeprecatedCudaDriverVersionAvailable DetectedDisplay
        DeprecatedCuptiVersionOlderThanCudaDriver CudaSupportStatus L4TVersion SoftwareReleaseVersion Hostname
    """,
    700: """
        SerialNumber IsDevicePropsUpdated IsDeviceCapsUpdated IsPersistentDevice DeviceUniqueString IsRootEnabled
        IsDeviceMemoryControllerPropsUpdated
    """,
    708: "IsDeviceCpuPropsUpdated XauthorityPath GuestVmId DeviceHwSerial Obsolete712",
    720: "HardwareUID SystemUID NamespacePID",
    800: """
        HasThreadStateEvents HasCpuCycles HasL1CacheDataReadMisses HasL1CacheDataWriteMisses
        HasL1CacheInstructionMisses HasL2CacheDataReadMisses HasL2CacheDataWriteMisses HasL2CacheInstructionMisses
        HasFrameEvents HasNvtxEvents HasMemUsageEvents HasPowerRateEvents HasCudaEvents HasGraphicsEvents
        HasCpuOfflineEvents HasOSRuntimeEvents HasCuDNNEvents HasCuBLASEvents
    """,
    819: "HasOpenACCEvents HasNvMediaEvents HasCudaBacktraceEvents HasVideoEvents",
    830: "PmuEventInfo PmuUnitInfo",
    838: """
        SupportsDX11 SupportsDX12 SupportsGpuCtxsw SupportsTraceAllTasks SupportsPmuCounters SupportsIncludeChildren
        SupportsCpuFrequency SupportsVulkan SupportsMPI SupportsSamplingOptions SupportsCpuCtxsw SupportsGpuMetrics
        HasMutualL2CacheEvents HasBacktraces HasBacktracingAlgorithms SupportsSystemWideSampling SupportsUMPageFaults
    """,
    860: "SupportedSamplingRates SupportsSampling SupportsLinuxPerf dptiSupportsHES",
    880: """
        ModuleVersion Obsolete881 KernelVersion ModuleVersionMajor ModuleVersionMinor ModuleIsLoadable
        DaemonPackageBuildId DaemonBuildId KernelModuleIsNotPresent ElfFileMapping DaemonNDAEnabled
        EventLibSourcesInfo SupportsArchTimer SupportsForceArchTimer SupportedFTraceEvents QnxKernelTraceInfo
        IsGameRecordingModeOn GpuInfo UseSshTunnel HasOpenMPEvents SupportsSli SupportsLBR GpuMetricsConfig
        SupportsOpenSHMEM ExportLevel GpuMetricsSupportedGpus SupportsUCX SupportsIsr SupportsSocMetrics
        SocMetricsConfig NicInfo OfedDriverVersion LinuxPerfInfo SupportsPythonBacktraceSampling SupportsNicMetrics
    """,
    917: "SupportsVulkanSC SupportsOpenXR LinuxParanoidLevel SupportsSyscallTrace SocInfo",
    923: "ArmCores PluginsInfo SupportsNCCL",
}
NAMES = {first + index: name for first, names in _FROM.items() for index, name in enumerate(names.split())}

SECRET = frozenset({"DeviceEnvironment"})
"""The environment variables of the profiler."""
MESSAGES = frozenset(
    {
        *("EventLibSourcesInfo", "SupportedFTraceEvents", "QnxKernelTraceInfo", "GpuInfo", "GpuMetricsSupportedGpus"),
        *("NicInfo", "LinuxPerfInfo", "SocInfo", "ArmCores", "PluginsInfo"),
    }
)
"""Those whose values are protobuf messages: no texts, but what other tables say in columns."""
LEFT_OUT = SECRET | MESSAGES
