#!/bin/bash
# Builds the disk and the kernels that the virtual machines of ci/vm start from, in $OUT/vm/image:
#     root.img                   Debian 12 with systemd, sshd and GlusterFS, ext4
#     kernels/NAME/vmlinuz,initrd,release
# NAME is the suite that a kernel comes from: bookworm (always), bookworm-backports and bullseye (where the mirror has them).
# The image is built anew when this file changes. All comes from the mirror that this machine's own apt uses.
set -euo pipefail
cd "$(dirname "$0")/../.."
OUT=$(realpath -m "${OUT:-out}")
image=$OUT/vm/image

die() { echo "ci/vm/image.sh: $*" >&2; exit 2; }

stamp=$(sha256sum ci/vm/image.sh | cut -c1-16)
[[ $(cat "$image/stamp" 2>/dev/null) != "$stamp" ]] || exit 0

[[ $EUID -eq 0 ]] || die "building the image needs root"
for program in mmdebstrap mke2fs apt-get; do
	command -v $program >/dev/null || die "there is no $program (ci/install.sh --all)"
done

# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
	awk '$2 == "bookworm" && $3 == "main" { print $1; exit }')
[[ -n $mirror ]] || die "this machine's apt has no source for Debian 12's main"
mirror=${mirror%/}

work=$OUT/vm/image.new
rm -rf --one-file-system "$work"
mkdir -p "$work"
trap 'rm -rf --one-file-system "$work"' EXIT
has_suite() { /usr/lib/apt/apt-helper -qq download-file "$mirror/dists/$1/InRelease" "$work/InRelease" >/dev/null 2>&1; }

sources=("deb $mirror bookworm main") suites=(bookworm)
for suite in bookworm-backports bullseye; do
	if has_suite $suite; then
		sources+=("deb $mirror $suite main")
		suites+=("$suite")
	else
		echo "# $suite: the mirror does not have it; its kernel is left out"
	fi
done

# The root file system takes the newest kernel of each suite. bullseye has no priority for anything else.
cat >"$work/kernels" <<'KERNELS'
#!/bin/bash
# In the new root file system: the kernel package that a suite's linux-image-amd64 depends on.
set -eu
export DEBIAN_FRONTEND=noninteractive
for suite in "$@"; do
	image=$(apt-cache show linux-image-amd64 | awk -v suite="$suite" '
		$1 == "Version:" { from = $2 ~ /bpo/ ? "bookworm-backports" : $2 ~ /^5\.10/ ? "bullseye" : "bookworm" }
		$1 == "Depends:" && from == suite && !found { sub(/,$/, "", $2); print $2; found = 1 }')
	[ -n "$image" ] || { echo "no kernel in $suite" >&2; exit 1; }
	apt-get -q -y --no-install-recommends -t "$suite" install "$image"
	release=${image#linux-image-}
	mkdir -p "/kernels/$suite"
	mv "/boot/vmlinuz-$release" "/kernels/$suite/vmlinuz"
	mv "/boot/initrd.img-$release" "/kernels/$suite/initrd"
	echo "$release" >"/kernels/$suite/release"
done
KERNELS
chmod 755 "$work/kernels"

# What the guests' storage and network need at boot; a small initrd matters where the processor is emulated.
cat >"$work/initrd.conf" <<'CONF'
MODULES=list
COMPRESS=gzip
CONF
printf '%s\n' virtio_pci virtio_blk virtio_net virtio_scsi sd_mod ext4 >"$work/initrd.modules"
# Debian's own sources prefer nothing: without this, bullseye's old packages and backports' new ones would be candidates.
printf 'Package: *\nPin: release n=%s\nPin-Priority: 100\n\n' bookworm-backports bullseye >"$work/pin"

packages=(systemd-sysv dbus udev kmod openssh-server iproute2 procps chrony e2fsprogs dmsetup sg3-utils nftables strace
	glusterfs-server glusterfs-client initramfs-tools zstd)
# In its own mounts: whatever ends it, nothing stays mounted below the folder that is removed.
# shellcheck disable=SC2016
unshare --mount mmdebstrap --quiet --mode=root --variant=minbase --include="$(IFS=,; echo "${packages[*]}")" \
	--aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io \
	--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
	--dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/lib/modules/*/kernel/sound/*' \
	--dpkgopt='path-exclude=/lib/modules/*/kernel/drivers/gpu/*' --dpkgopt='path-exclude=/lib/modules/*/kernel/drivers/media/*' \
	--dpkgopt='path-exclude=/lib/modules/*/kernel/drivers/net/wireless/*' \
	--dpkgopt='path-exclude=/lib/modules/*/kernel/drivers/net/ethernet/*' \
	--setup-hook='mkdir -p "$1/etc/initramfs-tools/conf.d" "$1/usr/share/initramfs-tools/modules.d" "$1/etc/apt/preferences.d"' \
	--setup-hook="copy-in '$work/initrd.conf' /etc/initramfs-tools/conf.d" \
	--setup-hook="copy-in '$work/initrd.modules' /usr/share/initramfs-tools/modules.d" \
	--setup-hook="copy-in '$work/pin' /etc/apt/preferences.d" \
	--customize-hook="copy-in '$work/kernels' /root" \
	--customize-hook="chroot \"\$1\" /root/kernels ${suites[*]}" \
	--customize-hook='rm "$1/root/kernels"' \
	bookworm "$work/root" "${sources[@]}"

root=$work/root
mv "$root/kernels" "$work/kernels.new"
# A name for each disk that does not depend on the order in which drivers find it is given by the kernel's command line.
echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
echo guest >"$root/etc/hostname"
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/resolv.conf"
: >"$root/etc/machine-id"
printf 'PermitRootLogin prohibit-password\nUseDNS no\nMaxStartups 100\n' >"$root/etc/ssh/sshd_config.d/culprit.conf"
mkdir -p "$root/root/.ssh" "$root/var/log/journal"
chmod 700 "$root/root/.ssh"
# One-off work of a Debian system that nobody uses here.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
	systemd-networkd-wait-online.service getty@tty1.service glusterd.service; do
	chroot "$root" systemctl -q disable $unit 2>/dev/null || true
done

# A seed disk gives a guest its name, address, host key and the key of its user (see vms.py).
cat >"$root/usr/local/sbin/culprit-seed" <<'SEED'
#!/bin/sh
set -e
mkdir -p /run/seed
tar -C /run/seed -xf /dev/disk/by-id/virtio-seed
sh /run/seed/seed.sh
SEED
chmod 755 "$root/usr/local/sbin/culprit-seed"
cat >"$root/etc/systemd/system/culprit-seed.service" <<'UNIT'
[Unit]
Description=name, address and keys of this guest
DefaultDependencies=no
After=local-fs.target systemd-udev-settle.service
Wants=systemd-udev-settle.service
Before=network-pre.target ssh.service chrony.service glusterd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/culprit-seed

[Install]
WantedBy=sysinit.target
UNIT
chroot "$root" systemctl -q enable culprit-seed.service
chroot "$root" systemctl -q mask systemd-timesyncd.service 2>/dev/null || true

mke2fs -q -F -t ext4 -L root -d "$root" "$work/root.img" 4G
rm -rf --one-file-system "$root" "$work/kernels" "$work"/initrd.* "$work/pin" "$work/InRelease"
mv "$work/kernels.new" "$work/kernels"
echo "$stamp" >"$work/stamp"
rm -rf --one-file-system "$image"
mv "$work" "$image"
