/*
 * The one way into this copy of libpcap's filter compiler, and the few functions of the rest of libpcap that it calls.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "pcap-int.h"

/*
 * Compiles `text` for frames of a link type into instructions that return `snap` for a packet that passes. Returns 0 and
 * the instructions, to be freed with landspeed_filter_free; else why not, PCAP_ERRBUF_SIZE bytes at `why`.
 */
int
landspeed_filter_compile(int link_type, int snap, const char *text, struct bpf_insn **instructions, unsigned *count,
    char *why)
{
	struct bpf_program program = { 0, NULL };
	pcap_t *p = calloc(1, sizeof(*p));
	int rc;

	if (p == NULL) {
		pcap_strlcpy(why, "out of memory", PCAP_ERRBUF_SIZE);
		return (-1);
	}
	p->linktype = link_type;
	p->snapshot = snap;
	p->activated = 1;
	/* A card takes the VLAN tag out of the frame; the kernel tells a filter of it. */
	p->bpf_codegen_flags = BPF_SPECIAL_VLAN_HANDLING;
	rc = pcap_compile(p, &program, text, 1, PCAP_NETMASK_UNKNOWN);
	if (rc == 0) {
		*instructions = program.bf_insns;
		*count = program.bf_len;
	} else {
		pcap_strlcpy(why, p->errbuf, PCAP_ERRBUF_SIZE);
	}
	free(p);
	return (rc == 0 ? 0 : -1);
}

void
landspeed_filter_free(struct bpf_insn *instructions)
{
	free(instructions);
}

int
pcap_snapshot(pcap_t *p)
{
	return (p->snapshot);
}

int
pcap_datalink(pcap_t *p)
{
	return (p->linktype);
}

const char *
pcap_datalink_val_to_description_or_dlt(int dlt)
{
	(void)dlt;
	return ("this link type");
}

int
pcap_strcasecmp(const char *one, const char *other)
{
	return (strcasecmp(one, other));
}

pcap_t *
pcap_open_dead(int link_type, int snap)
{
	(void)link_type;
	(void)snap;
	return (NULL);
}

void
pcap_close(pcap_t *p)
{
	(void)p;
}
